// The functions of ElementwiseLayer; what each member means stands there. The comment of each says
// its formulas, and what backward reads and why that serves.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/core/vector_exp.hpp"
#include "caffe/layers/elementwise.hpp"

namespace caffe {

constexpr Reading kReadsNothing = {};
constexpr float kUnbounded = std::numeric_limits<float>::infinity();

constexpr Reading reads_top(Quality quality) {
  return {Reading::What::Top, quality};
}
constexpr Reading reads_bottom(Quality quality) {
  return {Reading::What::Bottom, quality};
}

// 1 / (1 + e^-x), in arithmetic that vectorises.
inline float vector_sigmoid(float x) {
  return 1.0f / (1.0f + vector_exp(-x));
}

// tanh x, within a few units in the last place, in arithmetic that vectorises.
inline float vector_tanh(float x) {
  // Near 0, where 1 - 2 / (e^2x + 1) cancels, a convergent of tanh's continued fraction.
  const float z = x * x;
  const float near = x * (945.0f + z * (105.0f + z)) / (945.0f + z * (420.0f + z * 15.0f));
  const float far = 1.0f - 2.0f / (vector_exp(2.0f * x) + 1.0f);
  return z < 0.3f ? near : far;
}

// e^x - 1 for x <= 0 and a little above, without its cancellation near 0: with t = tanh(x / 2) it is
// 2t / (1 - t).
inline float vector_expm1(float x) {
  const float t = vector_tanh(0.5f * x);
  return 2.0f * t / (1.0f - t);
}

// log(1 + u) for u from 0 to 1, in arithmetic that vectorises: with s = u / (2 + u) it is
// 2 atanh(s) = 2 (s + s^3 / 3 + s^5 / 5 + ...), and s is at most 1/3.
inline float vector_log1p(float u) {
  const float s = u / (2.0f + u);
  const float z = s * s;
  float sum = 1.0f / 13;
  for (const float odd : {11.0f, 9.0f, 7.0f, 5.0f, 3.0f, 1.0f}) sum = sum * z + 1.0f / odd;
  return 2.0f * s * sum;
}

// Holds for every function below that does not say otherwise.
struct Differentiable {
  static constexpr bool kDifferentiable = true;
};

// AbsVal.
//   y = |x|      dx = sign(x) * dy, 0 where x = 0
// Backward reads: the sign of x, with zeros told apart.
struct AbsVal : Differentiable {
  Reading reading() const { return reads_bottom(Quality::BoundedSign); }
  float value(float x) const { return std::fabs(x); }
  float slope(float x) const { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; }
  float steepest() const { return 1; }
};

// BNLL: binomial normal log likelihood, a smooth ReLU.
//   y = log(1 + e^x)      dx = dy * e^x / (1 + e^x) = dy * (1 - e^-y)
// Backward reads: y, within a bound.
struct BNLL : Differentiable {
  Reading reading() const { return reads_top(Quality::Bounded); }
  float value(float x) const { return std::max(x, 0.0f) + vector_log1p(vector_exp(-std::fabs(x))); }
  float slope(float y) const { return -vector_expm1(-y); }
  float steepest() const { return 1; }
};

// ELU.
//   y = x > 0 ? x : alpha * (e^x - 1)      dx = dy * (x > 0 ? 1 : y + alpha)
// Backward reads: y within a bound, and with its sign where the slope jumps at 0 (alpha is not 1).
// For alpha < 0, y does not tell the sign of x: then x, with its sign.
struct ELU : Differentiable {
  float alpha = 1;

  explicit ELU(float alpha) : alpha(alpha) {}
  Reading reading() const {
    if (alpha < 0) return reads_bottom(Quality::BoundedSign);
    return reads_top(alpha == 1 ? Quality::Bounded : Quality::BoundedSign);
  }
  float value(float x) const {
    const float bent = alpha * vector_expm1(std::min(x, 0.0f));  // NaN stays
    return x > 0 ? x : bent;
  }
  float slope(float read) const {
    const float bent = alpha < 0 ? alpha * vector_exp(std::min(read, 0.0f)) : read + alpha;
    return read > 0 ? 1.0f : bent;
  }
  float steepest() const { return std::max(1.0f, std::fabs(alpha)); }
};

// Exp.
//   y = base^(scale * x + shift), base -1 for e      dx = dy * y * scale * ln(base)
// Backward reads: y, within a bound.
struct Exp : Differentiable {
  float inner, outer;  // y = outer * e^(inner x)

  // ConfigError unless base is -1 or positive.
  Exp(float base, float scale, float shift) {
    require(base == -1 || base > 0, "base is ", base, ", needs to be positive, or -1 for e");
    const float log_base = base == -1 ? 1 : std::log(base);
    inner = scale * log_base;
    outer = std::exp(shift * log_base);
  }
  Reading reading() const { return reads_top(Quality::Bounded); }
  float value(float x) const { return outer * std::exp(inner * x); }
  float slope(float y) const { return inner * y; }
  float steepest() const { return kUnbounded; }
};

// Log.
//   y = log_base(scale * x + shift), base -1 for e
//   dx = dy * scale / (ln(base) * (scale * x + shift)) = dy * scale / ln(base) * base^-y
// Backward reads: y, within a bound, which bounds the slope's relative error.
struct Log : Differentiable {
  float scale, shift, log_base;

  // ConfigError unless base is -1, or positive and not 1.
  Log(float base, float scale, float shift) : scale(scale), shift(shift) {
    require(base == -1 || (base > 0 && base != 1), "base is ", base,
            ", needs to be positive and not 1, or -1 for e");
    log_base = base == -1 ? 1 : std::log(base);
  }
  Reading reading() const { return reads_top(Quality::Bounded); }
  float value(float x) const { return std::log(scale * x + shift) / log_base; }
  float slope(float y) const { return scale / log_base * std::exp(-y * log_base); }
  float steepest() const { return kUnbounded; }
};

// Power.
//   y = (scale * x + shift)^power
//   dx = dy * power * scale * (scale * x + shift)^(power - 1)
// Backward reads: nothing where that is a constant; x, within a bound for powers 2, 3, ..., where
// its error does little harm, and exactly for others, whose slope may be infinite at 0.
struct Power : Differentiable {
  float power, scale, shift;

  Power(float power, float scale, float shift) : power(power), scale(scale), shift(shift) {}
  bool straight() const { return power == 0 || power == 1 || scale == 0; }
  Reading reading() const {
    if (straight()) return kReadsNothing;
    const bool whole = power > 1 && power == std::floor(power);
    return reads_bottom(whole ? Quality::Bounded : Quality::Exact);
  }
  float value(float x) const { return raised(scale * x + shift, power); }
  float slope(float x) const {
    const float factor = power * scale;
    return straight() ? factor : factor * raised(scale * x + shift, power - 1);
  }
  float steepest() const { return straight() ? std::fabs(power * scale) : kUnbounded; }

 private:
  static float raised(float base, float power) {
    if (power == 0) return 1;
    if (power == 1) return base;
    if (power == 2) return base * base;
    return std::pow(base, power);
  }
};

// Sigmoid.
//   y = 1 / (1 + e^-x)      dx = dy * y * (1 - y)
// Backward reads: y, within a bound.
struct Sigmoid : Differentiable {
  Reading reading() const { return reads_top(Quality::Bounded); }
  float value(float x) const { return vector_sigmoid(x); }
  float slope(float y) const { return y * (1.0f - y); }
  float steepest() const { return 0.25f; }
};

// Swish.
//   y = x * s with s = 1 / (1 + e^(-beta x))      dx = dy * (s + beta * y * (1 - s))
// Backward reads: x, within a bound; y does not tell x, as it falls and rises.
struct Swish : Differentiable {
  float beta;

  explicit Swish(float beta) : beta(beta) {}
  Reading reading() const { return reads_bottom(Quality::Bounded); }
  float value(float x) const { return x * vector_sigmoid(beta * x); }
  float slope(float x) const {
    const float s = vector_sigmoid(beta * x);
    return s + beta * x * s * (1.0f - s);
  }
  float steepest() const { return 1.1f; }  // 1.09984 where beta x = 2.39936, for any beta
};

// TanH.
//   y = tanh(x)      dx = dy * (1 - y^2)
// Backward reads: y, within a bound.
struct TanH : Differentiable {
  Reading reading() const { return reads_top(Quality::Bounded); }
  float value(float x) const { return vector_tanh(x); }
  float slope(float y) const { return 1.0f - y * y; }
  float steepest() const { return 1; }
};

// Threshold.
//   y = x > threshold ? 1 : 0      no gradient is passed on
// Backward reads: nothing.
struct Threshold {
  static constexpr bool kDifferentiable = false;
  float threshold;

  explicit Threshold(float threshold) : threshold(threshold) {}
  Reading reading() const { return kReadsNothing; }
  float value(float x) const { return x > threshold ? 1.0f : 0.0f; }
  float slope(float) const { return 0; }
  float steepest() const { return kUnbounded; }
};

}  // namespace caffe
