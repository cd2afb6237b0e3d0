#include "logarithm.hpp"

namespace sz {
namespace {

// 256 * log2(1 + i / 256), by repeated squaring.
struct LogTable {
  uint16_t value[256];
};

constexpr LogTable make_log_table() {
  LogTable table = {};
  for (uint64_t i = 0; i < 256; i++) {
    uint64_t x = (256 + i) << 22;  // in units of 2^-30, below 2
    uint32_t log = 0;
    for (int bit = 0; bit < 9; bit++) {
      x = x * x >> 30;
      const bool two = x >= uint64_t{2} << 30;
      log = log * 2 + (two ? 1 : 0);
      if (two) x >>= 1;
    }
    table.value[i] = static_cast<uint16_t>((log + 1) / 2);
  }
  return table;
}

constexpr LogTable kLog = make_log_table();

}  // namespace

uint32_t log256(uint32_t v) {
  const int exponent = 31 - __builtin_clz(v);
  const uint32_t mantissa = exponent >= 8 ? v >> (exponent - 8) : v << (8 - exponent);
  return static_cast<uint32_t>(exponent) * 256 + kLog.value[mantissa & 255];
}

}  // namespace sz
