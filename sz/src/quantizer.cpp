#include "quantizer.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace sz {
namespace {

// Between these every product of the quantiser stays a normal number.
template <typename T>
constexpr double kSmallestBound = std::is_same_v<T, float> ? 0x1p-115 : 0x1p-1000;
template <typename T>
constexpr double kLargestBound = std::is_same_v<T, float> ? 0x1p110 : 0x1p1000;

// The grid is a little finer than the bound allows, so that rounding (of x / step, of adding the
// dither and of the product with step, together up to about |code| * 2^-22 steps in float32) rarely
// makes an exception.
constexpr double kMargin = 0x1p-10;

// For a step that is near 2 * bound.
template <typename T>
Scale<T> make_scale(T step, double bound) {
  Scale<T> scale = {};
  scale.step = step;
  scale.inverse = static_cast<T>(1.0 / static_cast<double>(step));
  // x - y is rounded; one number less than the bound makes up for that.
  auto threshold = static_cast<T>(bound);
  if (static_cast<double>(threshold) > bound) threshold = std::nextafter(threshold, T(0));
  scale.threshold = std::nextafter(threshold, T(0));
  return scale;
}

}  // namespace

template <typename T>
bool needs_lossless(double error_bound) {
  return error_bound < kSmallestBound<T>;
}

Signs signs_of(bool keep_sign, double negative_factor) {
  if (!keep_sign) return Signs::Lost;
  return negative_factor == 1 ? Signs::Kept : Signs::Scaled;
}

template <typename T>
T negative_step(T step, double factor) {
  return static_cast<T>(static_cast<double>(step) * factor);
}

template <typename T>
Grid<T> make_grid(double error_bound, double negative_factor, bool keep_sign, bool dither,
                  uint32_t seed) {
  const double bound = std::min(error_bound, kLargestBound<T> / negative_factor);
  const auto step = static_cast<T>(2 * bound * (1 - kMargin));
  Grid<T> grid = {};
  grid.positive = make_scale(step, bound);
  grid.negative = make_scale(negative_step(step, negative_factor), bound * negative_factor);
  grid.signs = signs_of(keep_sign, negative_factor);
  grid.dither = dither;
  grid.seed = seed;
  return grid;
}

template bool needs_lossless<float>(double);
template bool needs_lossless<double>(double);
template float negative_step(float, double);
template double negative_step(double, double);
template Grid<float> make_grid<float>(double, double, bool, bool, uint32_t);
template Grid<double> make_grid<double>(double, double, bool, bool, uint32_t);

}  // namespace sz
