// The stream's header and the table of chunk sizes after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sz/sz.hpp"

namespace sz {

constexpr size_t kFixedHeader = 24;
constexpr size_t kMaxDims = 32;

struct Header {
  bool keep_sign = false;
  double error_bound = 0;
  float step = 0;  // 0: lossless
  std::vector<int64_t> shape;

  uint64_t count = 0;
  uint64_t chunks = 0;
  size_t size = 0;  // of the header, without the table
};

// Number of values of a shape. Throws ArgumentError on a negative axis, too many axes or overflow.
uint64_t count_values(const std::vector<int64_t>& shape);

uint64_t count_chunks(uint64_t count);

// Writes kFixedHeader + 8 * dims bytes.
void write_header(const Header& header, uint8_t* dst);

// Throws Error unless the header is sound and the chunks' sizes add up to `size`.
Header read_header(const uint8_t* src, size_t size);

}  // namespace sz
