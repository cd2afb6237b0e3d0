// What comes before the chunks of a stream: header, description of the codes and the table of chunk sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "layout.hpp"
#include "model.hpp"
#include "sz/sz.hpp"

namespace sz {

constexpr int kVersion = 3;
constexpr size_t kFixedHeader = 40;
constexpr size_t kMaxDims = 32;
constexpr size_t kFactorBytes = 8;  // of negative_factor, where it is not 1
constexpr double kLargestFactor = 1024;

struct Header {
  Type type = Type::Float32;
  bool keep_sign = false;
  bool dither = false;
  bool checksum = false;
  bool modelled = false;  // describes its codes; if not, every chunk is raw
  bool pairs = false;     // that model is of pairs
  uint32_t seed = 0;
  double error_bound = 0;
  double step = 0;             // 0: lossless
  double negative_factor = 1;  // the step of negative values is so many steps
  Layout layout = {};
  std::vector<int64_t> shape;

  // Bytes of the table's entry of a chunk: size and, if turned on, checksum.
  size_t entry_bytes() const { return checksum ? 8 : 4; }
  size_t fixed_bytes() const {
    return kFixedHeader + 8 * shape.size() + (negative_factor != 1 ? kFactorBytes : 0);
  }
};

// Where a stream's parts are.
struct Sections {
  Header header;
  CodeModel codes;  // if modelled
  size_t table;
  size_t chunks;
};

template <typename T>
constexpr Type kTypeOf = std::is_same_v<T, float> ? Type::Float32 : Type::Float64;

// Number of values of a shape. Throws ArgumentError on a negative axis, too many axes or overflow.
uint64_t count_values(const std::vector<int64_t>& shape);

// Writes header.fixed_bytes() bytes.
void write_header(const Header& header, uint8_t* dst);

// Throws Error unless everything is sound and the chunks' sizes add up to `size`.
Sections read_sections(const uint8_t* src, size_t size);

}  // namespace sz
