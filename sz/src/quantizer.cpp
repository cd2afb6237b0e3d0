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

}  // namespace

template <typename T>
bool needs_lossless(double error_bound) {
  return error_bound < kSmallestBound<T>;
}

template <typename T>
Grid<T> make_grid(double error_bound, bool keep_sign, bool dither, uint32_t seed) {
  const double bound = std::min(error_bound, kLargestBound<T>);
  Grid<T> grid = {};
  grid.step = static_cast<T>(2 * bound * (1 - kMargin));
  grid.inverse = static_cast<T>(1.0 / static_cast<double>(grid.step));
  // x - y is rounded; one number less than the bound makes up for that.
  auto threshold = static_cast<T>(bound);
  if (static_cast<double>(threshold) > bound) threshold = std::nextafter(threshold, T(0));
  grid.threshold = std::nextafter(threshold, T(0));
  grid.keep_sign = keep_sign;
  grid.dither = dither;
  grid.seed = seed;
  return grid;
}

template bool needs_lossless<float>(double);
template bool needs_lossless<double>(double);
template Grid<float> make_grid<float>(double, bool, bool, uint32_t);
template Grid<double> make_grid<double>(double, bool, bool, uint32_t);

}  // namespace sz
