// Lossless chunks: a mask of the non-zero words, and these in four byte planes. The words are
// rotated left by one bit first, so that the exponent is one plane and the sign joins the lowest.
#include <cstring>

#include "byte_coder.hpp"
#include "chunk.hpp"
#include "mask.hpp"

namespace sz {
namespace {

constexpr int kPlanes = 4;

uint32_t rotate_left(uint32_t x) {
  return x << 1 | x >> 31;
}
uint32_t rotate_right(uint32_t x) {
  return x >> 1 | x << 31;
}

// Fills mask and words from count values; returns the number of words.
size_t gather_words(const Kernels& kernels, const float* src, int count, Scratch* scratch) {
  size_t words = 0;
  uint32_t group[kGroupValues];
  for (int at = 0; at < count; at += kGroupValues) {
    const int here = count - at < kGroupValues ? count - at : kGroupValues;
    if (here < kGroupValues) std::memset(group, 0, sizeof(group));
    std::memcpy(group, src + at, sizeof(float) * static_cast<size_t>(here));
    words +=
        static_cast<size_t>(kernels.compact(group, scratch->mask + at / 8, scratch->words + words));
  }
  return words;
}

void scatter_words(const Kernels& kernels, const Scratch& scratch, float* dst, int count) {
  const uint32_t* words = scratch.words;
  uint32_t group[kGroupValues];
  for (int at = 0; at < count; at += kGroupValues) {
    const int here = count - at < kGroupValues ? count - at : kGroupValues;
    const uint8_t* mask = scratch.mask + at / 8;
    kernels.expand(words, mask, group);
    std::memcpy(dst + at, group, sizeof(float) * static_cast<size_t>(here));
    words += count_bits(mask, kGroupValues / 8);
  }
}

}  // namespace

size_t encode_lossless(const Kernels& kernels, const float* src, int count, Scratch* scratch) {
  const size_t words = gather_words(kernels, src, count, scratch);
  uint8_t* out = scratch->out;
  *out++ = kLosslessChunk;
  out = encode_section(kernels, scratch->mask, mask_bytes(count), out);
  uint8_t* plane = scratch->packed[0];
  for (int p = 0; p < kPlanes; p++) {
    for (size_t i = 0; i < words; i++) {
      plane[i] = static_cast<uint8_t>(rotate_left(scratch->words[i]) >> (8 * p));
    }
    out = encode_section(kernels, plane, words, out);
  }
  return static_cast<size_t>(out - scratch->out);
}

bool decode_lossless(const Kernels& kernels, const uint8_t* src, size_t size, float* dst, int count,
                     Scratch* scratch) {
  Reader reader = {src, src + size};
  if (!decode_section(kernels, &reader, scratch->mask, mask_bytes(count))) return false;
  if (!finish_mask(count, scratch->mask)) return false;
  const size_t words = count_bits(scratch->mask, mask_bytes(count));
  uint8_t* plane = scratch->packed[0];
  for (int p = 0; p < kPlanes; p++) {
    if (!decode_section(kernels, &reader, plane, words)) return false;
    for (size_t i = 0; i < words; i++) {
      const uint32_t before = p == 0 ? 0 : scratch->words[i];
      scratch->words[i] = before | static_cast<uint32_t>(plane[i]) << (8 * p);
    }
  }
  if (reader.left() != 0) return false;
  for (size_t i = 0; i < words; i++) scratch->words[i] = rotate_right(scratch->words[i]);
  scatter_words(kernels, *scratch, dst, count);
  return true;
}

}  // namespace sz
