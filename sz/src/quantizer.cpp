#include "quantizer.hpp"

#include <algorithm>

namespace sz {
namespace {

// Between these every product of the quantiser stays a normal float32.
constexpr double kSmallestBound = 0x1p-115;
constexpr double kLargestBound = 0x1p110;

// The grid is a little finer than the bound allows, so that rounding (of x / step and of
// code * step, together up to about |code| * 2^-23 steps) rarely makes an exception.
constexpr double kMargin = 0x1p-10;

}  // namespace

bool needs_lossless(double error_bound) {
  return error_bound < kSmallestBound;
}

Grid make_grid(double error_bound, bool keep_sign) {
  const double bound = std::min(error_bound, kLargestBound);
  Grid grid = decoding_grid(static_cast<float>(2 * bound * (1 - kMargin)), keep_sign);
  grid.inverse = static_cast<float>(1.0 / static_cast<double>(grid.step));
  // x - y is rounded; one float less than the bound makes up for that.
  auto threshold = static_cast<float>(bound);
  if (static_cast<double>(threshold) > bound) threshold = std::nextafterf(threshold, 0.0f);
  grid.threshold = std::nextafterf(threshold, 0.0f);
  return grid;
}

Grid decoding_grid(float step, bool keep_sign) {
  return {step, 0.0f, 0.0f, keep_sign};
}

}  // namespace sz
