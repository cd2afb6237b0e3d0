// The grid that a bound gives, and the reference arithmetic of one value. Every kernel does the
// same float32 operations in the same order, without contraction into FMA.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels.hpp"

namespace sz {

// True if the bound is too small for a grid in float32; such data are stored losslessly.
bool needs_lossless(double error_bound);

// The grid of a bound that has one.
Grid make_grid(double error_bound, bool keep_sign);

// The grid of a stream, for decoding only.
Grid decoding_grid(float step, bool keep_sign);

inline uint32_t float_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

inline float dequantize_value(int code, const Grid& grid) {
  const auto q = static_cast<float>(code);
  if (!grid.keep_sign) return q * grid.step;
  return code == 0 ? 0.0f : (q - (code > 0 ? 0.5f : -0.5f)) * grid.step;
}

// Gives the code of x; false (and code 0) if x is out of range, not finite, or would decode to
// more than the threshold away.
inline bool quantize_value(float x, const Grid& grid, int* code) {
  *code = 0;
  const float scaled = x * grid.inverse;
  if (!(std::fabs(scaled) <= kCodeLimit)) return false;
  int q = 0;
  if (!grid.keep_sign) {
    q = static_cast<int>(std::lrintf(scaled));
  } else if (float_bits(x) << 1 != 0) {
    const float magnitude = std::fabs(scaled);
    q = static_cast<int>(magnitude);
    q += static_cast<float>(q) < magnitude;
    q = q > 1 ? q : 1;
    q = float_bits(x) >> 31 != 0 ? -q : q;
  }
  if (!(std::fabs(x - dequantize_value(q, grid)) <= grid.threshold)) return false;
  *code = q;
  return true;
}

}  // namespace sz
