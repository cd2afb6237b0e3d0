// The grid of values that an error bound gives.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace sz {

// True if the bound is too small for a grid in T; such data are stored losslessly.
template <typename T>
bool needs_lossless(double error_bound);

// The step of negative values: `factor` times that of the others, the product in double.
template <typename T>
T negative_step(T step, double factor);

// The grid that a stream's header tells: what decoding needs. Steps of negative values are
// `negative_factor` times as wide; anything but 1 needs keep_sign, and leaves negative values without
// dither. Without dither, seed is 0.
template <typename T>
Grid<T> grid_of(T step, double negative_factor, bool keep_sign, bool dither, uint32_t seed);

// The grid of a bound that has one, with what encoding needs besides. The bound of negative values is
// `negative_factor` times as wide.
template <typename T>
Grid<T> make_grid(double error_bound, double negative_factor, bool keep_sign, bool dither,
                  uint32_t seed);

}  // namespace sz
