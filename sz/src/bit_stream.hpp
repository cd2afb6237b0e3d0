// Numbers of few bits, as a stream describes what its coder expects.
#pragma once

#include <cstdint>

#include "bytes.hpp"

namespace sz {

// Bits from the lowest of each byte on.
struct BitWriter {
  uint8_t* at;
  uint64_t bits = 0;
  int fill = 0;

  void put(uint32_t value, int count) {
    bits |= static_cast<uint64_t>(value) << fill;
    for (fill += count; fill >= 8; fill -= 8) {
      *at++ = static_cast<uint8_t>(bits);
      bits >>= 8;
    }
  }
  uint8_t* end() {
    if (fill > 0) *at++ = static_cast<uint8_t>(bits);
    return at;
  }
};

struct BitReader {
  Reader* reader;
  uint32_t byte = 0;
  int left = 0;
  bool good = true;

  uint32_t get(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; i++) {
      if (left == 0) {
        uint8_t next = 0;
        good = reader->read(&next) && good;
        byte = next;
        left = 8;
      }
      value |= (byte & 1) << i;
      byte >>= 1;
      left--;
    }
    return value;
  }
};

// Binary digits; 0 for 0.
inline int length_of(uint32_t number) {
  return number == 0 ? 0 : 32 - __builtin_clz(number);
}

// A small change: d ones and a zero for d = 0, 1, -1, 2, -2, ...
inline void put_change(int change, BitWriter* bits) {
  const int ones = change > 0 ? 2 * change - 1 : -2 * change;
  bits->put((1u << ones) - 1, ones + 1);
}

// False if it is beyond `most`, up or down.
inline bool get_change(BitReader* bits, int most, int* change) {
  int ones = 0;
  while (bits->get(1) != 0) {
    if (++ones > 2 * most || !bits->good) return false;
  }
  *change = ones % 2 != 0 ? (ones + 1) / 2 : -(ones / 2);
  return true;
}

}  // namespace sz
