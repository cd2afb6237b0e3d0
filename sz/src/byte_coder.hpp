// A section: a known number of bytes, stored in the smallest of a few ways (FORMAT.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "bytes.hpp"
#include "kernels.hpp"

namespace sz {

// How a run of bytes would be stored, and in how many bytes.
struct SectionPlan {
  enum Kind : uint8_t { kRaw = 0, kConstant = 1, kHuffman = 2 };
  Kind kind;
  size_t size;  // bytes, an upper bound within 3 of the truth
  uint8_t lengths[256];
};

// Plans the section of `count` bytes whose histogram is `counts`. count <= kChunkValues.
void plan_section(const uint32_t* counts, size_t count, SectionPlan* plan);

// Writes it and returns its end; may write kPadding bytes beyond.
uint8_t* write_section(const Kernels& kernels, const SectionPlan& plan, const uint8_t* src,
                       size_t count, uint8_t* dst);

// Histogram, plan and write in one.
uint8_t* encode_section(const Kernels& kernels, const uint8_t* src, size_t count, uint8_t* dst);

// Reads a section of `count` bytes into dst. False if it is malformed.
bool decode_section(const Kernels& kernels, Reader* reader, uint8_t* dst, size_t count);

}  // namespace sz
