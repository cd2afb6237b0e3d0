// Loops over masks of one bit a value, as Tensor keeps them, in a form that compilers vectorise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "caffe/core/parallel.hpp"

namespace caffe {

// Bit i of a 32-bit word: compilers vectorise a test against a table, not a shift by the index.
struct BitTable {
  BitTable() {
    for (int i = 0; i < 32; ++i) bit[i] = 1u << i;
  }
  uint32_t bit[32];
};

// Calls body(word, first, last) for the 64-bit words of a mask of `count` values, in parallel.
template <typename Body>
void for_each_mask_word(int64_t count, const Body& body) {
  parallel_for((count + 63) / 64, kParallelGrain / 64, [&](int64_t begin, int64_t end) {
    for (int64_t word = begin; word < end; ++word) {
      body(word, word * 64, std::min(word * 64 + 64, count));
    }
  });
}

// Byte i of `flags`, 0 or 1, as bit i: the product moves bit 8i to 56 + i, and nothing else there.
inline uint64_t gather_bits(const uint8_t* flags) {
  uint64_t bytes;
  std::memcpy(&bytes, flags, sizeof bytes);
  return (bytes * 0x0102040810204080u) >> 56;
}

// Sets the bits of the values for which inside(index) holds, and clears the others.
template <typename Predicate>
void write_mask(int64_t count, uint64_t* words, const Predicate& inside) {
  for_each_mask_word(count, [&](int64_t word, int64_t first, int64_t last) {
    uint8_t flags[64] = {};
#pragma omp simd
    for (int64_t i = 0; i < last - first; ++i) flags[i] = inside(first + i) ? 1 : 0;
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits |= gather_bits(flags + 8 * i) << (8 * i);
    words[word] = bits;
  });
}

// dx = dy where the mask's bit is set, else slope * dy.
inline void pass_masked(int64_t count, const uint64_t* words, float slope, const float* dy,
                        float* dx) {
  const BitTable table;
  for_each_mask_word(count, [&](int64_t word, int64_t first, int64_t last) {
    for (int64_t at = first; at < last; at += 32) {
      const auto half = static_cast<uint32_t>(words[word] >> (at - first));
      const int64_t length = std::min<int64_t>(32, last - at);
#pragma omp simd
      for (int64_t i = 0; i < length; ++i) {
        const float passed = dy[at + i];
        const float damped = slope * passed;
        dx[at + i] = (half & table.bit[i]) != 0 ? passed : damped;
      }
    }
  });
}

}  // namespace caffe
