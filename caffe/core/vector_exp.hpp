// e^x that compilers vectorise: no branches, no calls, plain float arithmetic.
#pragma once

#include <cstdint>
#include <cstring>

namespace caffe {

// Within 2 units in the last place from -87.3 to 88.3; 0 below, where e^x is no normal float; held
// at e^88.3 above; NaN for NaN.
inline float vector_exp(float x) {
  constexpr float kLeast = -87.3365448f;     // log(FLT_MIN)
  constexpr float kMost = 88.3762626f;       // 2^n below stays finite
  constexpr float kRound = 12582912.0f;      // 1.5 * 2^23: adding it rounds to an integer
  constexpr float kLog2High = 0.693359375f;  // few bits, so n * kLog2High is exact
  constexpr float kLog2Low = -2.12194440e-4f;
  const float clamped = x > kMost ? kMost : x < kLeast ? kLeast : x;
  const float shifted = clamped * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLog2High) - n * kLog2Low;  // |r| <= log(2) / 2
  // e^r = 1 + r + r^2 * p(r), p interpolated at Chebyshev's points of the interval.
  float p = 1.98910799e-4f;
  p = p * r + 1.39337312e-3f;
  p = p * r + 8.33331048e-3f;
  p = p * r + 4.1666463e-2f;
  p = p * r + 1.66666672e-1f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  // The low bits of `shifted` are n; 2^n has n + 127 in its exponent field.
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127u) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return x < kLeast ? 0.0f : p * power;
}

}  // namespace caffe
