#include "length_table.hpp"

#include <cstring>

#include "kernels.hpp"

namespace sz {
namespace {

// An unused symbol counts as one with a code a bit longer than the longest: rare symbols and
// unused ones are neighbours.
constexpr int kUnused = kHuffmanBits + 1;

// What a symbol's length is expected to be: that of the symbol before (codes of values), or of the
// last symbol with as many ones (masks).
struct Predictor {
  bool by_ones;
  int last[9];

  explicit Predictor(bool ones) : by_ones(ones) {
    for (int& length : last) length = kUnused;
  }
  int& slot(int symbol) {
    return last[by_ones ? __builtin_popcount(static_cast<unsigned>(symbol)) : 0];
  }
};

// 0: as predicted; 1 0 s: one more (s = 0) or one less; 1 1 and four bits: the length.
struct Token {
  uint32_t bits;
  int size;
};

Token make_token(int length, int predicted) {
  if (length == predicted) return {0, 1};
  if (length == predicted + 1) return {1, 3};
  if (length == predicted - 1) return {1 | 4, 3};
  return {3 | static_cast<uint32_t>(length) << 2, 6};
}

int stored_length(uint8_t length) {
  return length == 0 ? kUnused : length;
}

int table_bits(const uint8_t* lengths, int last, bool by_ones) {
  Predictor predictor(by_ones);
  int bits = 0;
  for (int s = 0; s <= last; s++) {
    const int length = stored_length(lengths[s]);
    bits += make_token(length, predictor.slot(s)).size;
    predictor.slot(s) = length;
  }
  return bits;
}

// Reads single bits from the lowest on.
struct BitReader {
  Reader* reader;
  uint32_t byte = 0;
  int left = 0;
  bool good = true;

  uint32_t next() {
    if (left == 0) {
      uint8_t value = 0;
      good = reader->read(&value) && good;
      byte = value;
      left = 8;
    }
    const uint32_t bit = byte & 1;
    byte >>= 1;
    left--;
    return bit;
  }
};

int read_token(BitReader* bits, int predicted) {
  if (bits->next() == 0) return predicted;
  if (bits->next() == 0) return bits->next() == 0 ? predicted + 1 : predicted - 1;
  int length = 0;
  for (int i = 0; i < 4; i++) length |= static_cast<int>(bits->next()) << i;
  return length;
}

}  // namespace

uint8_t* write_length_table(const uint8_t* lengths, uint8_t* dst) {
  int last = 255;
  while (last > 0 && lengths[last] == 0) last--;
  const bool by_ones = table_bits(lengths, last, true) < table_bits(lengths, last, false);
  *dst++ = static_cast<uint8_t>(last);
  Predictor predictor(by_ones);
  uint64_t bits = by_ones ? 1 : 0;
  int fill = 1;
  for (int s = 0; s <= last; s++) {
    const int length = stored_length(lengths[s]);
    const Token token = make_token(length, predictor.slot(s));
    predictor.slot(s) = length;
    bits |= static_cast<uint64_t>(token.bits) << fill;
    for (fill += token.size; fill >= 8; fill -= 8) {
      *dst++ = static_cast<uint8_t>(bits);
      bits >>= 8;
    }
  }
  if (fill > 0) *dst++ = static_cast<uint8_t>(bits);
  return dst;
}

bool read_length_table(Reader* reader, uint8_t* lengths) {
  uint8_t last = 0;
  if (!reader->read(&last)) return false;
  BitReader bits = {reader};
  Predictor predictor(bits.next() != 0);
  std::memset(lengths, 0, 256);
  for (int s = 0; s <= last && bits.good; s++) {
    const int length = read_token(&bits, predictor.slot(s));
    if (length < 1 || length > kUnused) return false;
    predictor.slot(s) = length;
    lengths[s] = static_cast<uint8_t>(length == kUnused ? 0 : length);
  }
  return bits.good;
}

}  // namespace sz
