// Sums over the original values, added up in an order that no thread count or kernel changes.
#pragma once

#include "kernels.hpp"
#include "sz/sz.hpp"

namespace sz {

LaneSums empty_sums();

// Adds the sums of a chunk of `count` values; chunks must come in order.
void add_chunk(const LaneSums& sums, size_t count, Statistics* total);

}  // namespace sz
