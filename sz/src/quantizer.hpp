// The grid of values that an error bound gives.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace sz {

// True if the bound is too small for a grid in T; such data are stored losslessly.
template <typename T>
bool needs_lossless(double error_bound);

// The grid of a bound that has one. Without dither, seed is 0.
template <typename T>
Grid<T> make_grid(double error_bound, bool keep_sign, bool dither, uint32_t seed);

}  // namespace sz
