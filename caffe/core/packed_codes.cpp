#include "caffe/core/packed_codes.hpp"

#include <algorithm>
#include <cstring>

#include "caffe/core/simd.hpp"

namespace caffe {
namespace {

constexpr int kGroup = 8;

// The lanes of `word`, `bits` bits used in each byte, moved together to the low 8 * bits bits:
// neighbours are joined to lanes of 16, then 32, then 64 bits.
inline uint64_t squeeze(uint64_t word, int bits) {
  constexpr uint64_t kBytes = 0x00FF00FF00FF00FF;
  constexpr uint64_t kPairs = 0x0000FFFF0000FFFF;
  constexpr uint64_t kQuads = 0x00000000FFFFFFFF;
  word = (word & kBytes) | ((word & ~kBytes) >> (8 - bits));
  word = (word & kPairs) | ((word & ~kPairs) >> (16 - 2 * bits));
  return (word & kQuads) | ((word & ~kQuads) >> (32 - 4 * bits));
}

// The reverse of squeeze().
inline uint64_t spread(uint64_t word, int bits) {
  const uint64_t byte = (uint64_t{1} << bits) - 1;
  const uint64_t pair = (uint64_t{1} << 2 * bits) - 1;
  const uint64_t quad = (uint64_t{1} << 4 * bits) - 1;
  word = (word & quad) | ((word >> 4 * bits & quad) << 32);
  word =
      (word & pair * 0x0000000100000001) | ((word >> 2 * bits & pair * 0x0000000100000001) << 16);
  return (word & byte * 0x0001000100010001) | ((word >> bits & byte * 0x0001000100010001) << 8);
}

size_t digit_bytes(int64_t count, int bits) {
  return static_cast<size_t>((count * bits + 7) / 8);
}

// A group of codes, bits [shift, shift + bits) of each.
inline uint64_t joined(const int32_t* codes, int shift, int bits) {
  const uint32_t mask = (1u << bits) - 1;
  uint8_t bytes[kGroup] = {};
  for (int i = 0; i < kGroup; ++i) {
    bytes[i] = static_cast<uint8_t>(static_cast<uint32_t>(codes[i]) >> shift & mask);
  }
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return squeeze(word, bits);
}

// The reverse of joined(); `codes` hold their lower digits already.
inline void part(uint64_t word, int count, int shift, int bits, int32_t* codes) {
  word = spread(word, bits);
  uint8_t bytes[kGroup];
  std::memcpy(bytes, &word, sizeof(word));
  for (int i = 0; i < count; ++i) codes[i] |= static_cast<int32_t>(bytes[i]) << shift;
}

CAFFE_WIDE void pack_digit(const int32_t* codes, int64_t count, int shift, int bits,
                           uint8_t* packed) {
  const int64_t whole = count / kGroup * kGroup;
  for (int64_t i = 0; i < whole; i += kGroup, packed += bits) {
    const uint64_t word = joined(codes + i, shift, bits);
    std::memcpy(packed, &word, bits);
  }
  if (whole == count) return;
  int32_t last[kGroup] = {};
  std::copy(codes + whole, codes + count, last);
  const uint64_t word = joined(last, shift, bits);
  std::memcpy(packed, &word, digit_bytes(count - whole, bits));
}

CAFFE_WIDE void unpack_digit(const uint8_t* packed, int64_t count, int shift, int bits,
                             int32_t* codes) {
  const int64_t whole = count / kGroup * kGroup;
  uint64_t word = 0;
  for (int64_t i = 0; i < whole; i += kGroup, packed += bits) {
    std::memcpy(&word, packed, bits);
    part(word, kGroup, shift, bits, codes + i);
  }
  if (whole == count) return;
  word = 0;
  std::memcpy(&word, packed, digit_bytes(count - whole, bits));
  part(word, static_cast<int>(count - whole), shift, bits, codes + whole);
}

}  // namespace

int bits_for(int64_t codes) {
  int bits = 0;
  while (bits < 31 && (int64_t{1} << bits) < codes) ++bits;
  return bits;
}

size_t packed_bytes(int64_t count, int bits) {
  size_t bytes = 0;
  for (int shift = 0; shift < bits; shift += 8) {
    bytes += digit_bytes(count, std::min(8, bits - shift));
  }
  return bytes;
}

void pack_codes(const int32_t* codes, int64_t count, int bits, uint8_t* packed) {
  for (int shift = 0; shift < bits; shift += 8) {
    const int digit = std::min(8, bits - shift);
    pack_digit(codes, count, shift, digit, packed);
    packed += digit_bytes(count, digit);
  }
}

void unpack_codes(const uint8_t* packed, int64_t count, int bits, int32_t* codes) {
  std::fill_n(codes, count, 0);
  for (int shift = 0; shift < bits; shift += 8) {
    const int digit = std::min(8, bits - shift);
    unpack_digit(packed, count, shift, digit, codes);
    packed += digit_bytes(count, digit);
  }
}

}  // namespace caffe
