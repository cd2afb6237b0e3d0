#include "chunk.hpp"

#include <cstring>

namespace sz {
namespace {

size_t encode_raw(const float* src, int count, Scratch* scratch) {
  const size_t bytes = static_cast<size_t>(count) * 4;
  scratch->out[0] = kRawChunk;
  std::memcpy(scratch->out + 1, src, bytes);
  return 1 + bytes;
}

bool decode_raw(const uint8_t* src, size_t size, float* dst, int count) {
  if (size != static_cast<size_t>(count) * 4) return false;
  std::memcpy(dst, src, size);
  return true;
}

}  // namespace

size_t encode_chunk(const Kernels& kernels, const Grid* grid, const float* src, int count,
                    Scratch* scratch) {
  const size_t raw_size = 1 + static_cast<size_t>(count) * 4;
  size_t size = 0;
  if (grid != nullptr) size = encode_quantized(kernels, *grid, src, count, scratch);
  if (size == 0) size = encode_lossless(kernels, src, count, scratch);
  if (size == 0 || size >= raw_size) size = encode_raw(src, count, scratch);
  return size;
}

bool decode_chunk(const Kernels& kernels, const Grid* grid, const uint8_t* src, size_t size,
                  float* dst, int count, Scratch* scratch) {
  if (size == 0) return false;
  switch (src[0]) {
    case kRawChunk:
      return decode_raw(src + 1, size - 1, dst, count);
    case kLosslessChunk:
      return decode_lossless(kernels, src + 1, size - 1, dst, count, scratch);
    case kQuantizedChunk:
      return grid != nullptr &&
             decode_quantized(kernels, *grid, src + 1, size - 1, dst, count, scratch);
    default:
      return false;
  }
}

}  // namespace sz
