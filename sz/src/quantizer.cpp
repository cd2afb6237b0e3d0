#include "quantizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace sz {
namespace {

#include "values.inl"

// Between these every product of the quantiser stays a normal number.
template <typename T>
constexpr double kSmallestBound = std::is_same_v<T, float> ? 0x1p-115 : 0x1p-1000;
template <typename T>
constexpr double kLargestBound = std::is_same_v<T, float> ? 0x1p110 : 0x1p1000;

// The grid is a little finer than the bound allows, so that rounding (of x / step, of adding the
// dither and of the product with step, together up to about |code| * 2^-22 steps in float32) rarely
// makes an exception.
constexpr double kMargin = 0x1p-10;

// What encoding needs of a scale whose step is near 2 * bound.
template <typename T>
void add_bound(double bound, Scale<T>* scale) {
  scale->inverse = static_cast<T>(1.0 / static_cast<double>(scale->step));
  // x - y is rounded; one number less than the bound makes up for that.
  auto threshold = static_cast<T>(bound);
  if (static_cast<double>(threshold) > bound) threshold = std::nextafter(threshold, T(0));
  scale->threshold = std::nextafter(threshold, T(0));
}

Signs signs_of(bool keep_sign, double negative_factor) {
  if (!keep_sign) return Signs::Lost;
  return negative_factor == 1 ? Signs::Kept : Signs::Scaled;
}

}  // namespace

template <typename T>
bool needs_lossless(double error_bound) {
  return error_bound < kSmallestBound<T>;
}

template <typename T>
T negative_step(T step, double factor) {
  return static_cast<T>(static_cast<double>(step) * factor);
}

template <typename T>
Grid<T> grid_of(T step, double negative_factor, bool keep_sign, bool dither, uint32_t seed) {
  Grid<T> grid = {};
  grid.positive.step = step;
  grid.negative.step = negative_step(step, negative_factor);
  grid.signs = signs_of(keep_sign, negative_factor);
  grid.dither = dither;
  grid.seed = seed;
  for (int code = -8; code < 8; code++) {
    grid.base[code & 15] = base_of(code, grid);
    grid.slope[code & 15] = slope_of(code, grid);
  }
  return grid;
}

template <typename T>
Grid<T> make_grid(double error_bound, double negative_factor, bool keep_sign, bool dither,
                  uint32_t seed) {
  const double bound = std::min(error_bound, kLargestBound<T> / negative_factor);
  const auto step = static_cast<T>(2 * bound * (1 - kMargin));
  Grid<T> grid = grid_of(step, negative_factor, keep_sign, dither, seed);
  add_bound(bound, &grid.positive);
  add_bound(bound * negative_factor, &grid.negative);
  return grid;
}

template bool needs_lossless<float>(double);
template bool needs_lossless<double>(double);
template float negative_step(float, double);
template double negative_step(double, double);
template Grid<float> grid_of(float, double, bool, bool, uint32_t);
template Grid<double> grid_of(double, double, bool, bool, uint32_t);
template Grid<float> make_grid<float>(double, double, bool, bool, uint32_t);
template Grid<double> make_grid<double>(double, double, bool, bool, uint32_t);

}  // namespace sz
