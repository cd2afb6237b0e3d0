// The mask of non-zero values of a chunk: bit i % 8 of byte i / 8 for value i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bytes.hpp"
#include "kernels.hpp"

namespace sz {

inline size_t mask_bytes(int count) {
  return static_cast<size_t>(count + 7) / 8;
}

inline size_t count_bits(const uint8_t* mask, size_t bytes) {
  size_t bits = 0;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    bits += static_cast<size_t>(__builtin_popcountll(load<uint64_t>(mask + i)));
  }
  for (; i < bytes; i++) bits += static_cast<size_t>(__builtin_popcount(mask[i]));
  return bits;
}

// Clears what follows the mask of `count` values in its last group. False if the last byte marks
// values past the end.
inline bool finish_mask(int count, uint8_t* mask) {
  const size_t bytes = mask_bytes(count);
  std::memset(mask + bytes, 0, kGroupValues / 8);
  return count % 8 == 0 || mask[bytes - 1] >> (count % 8) == 0;
}

}  // namespace sz
