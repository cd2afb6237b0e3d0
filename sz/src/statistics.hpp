// Sums over the original values, added up in an order that no thread count or kernel changes.
#pragma once

#include "kernels.hpp"
#include "sz/sz.hpp"

namespace sz {

// Of a chunk of `count` values.
template <typename T>
Statistics chunk_statistics(const ValueKernels<T>& kernels, const T* src, size_t count);

// Adds those of the chunks in order.
Statistics total_statistics(const std::vector<Statistics>& chunks);

}  // namespace sz
