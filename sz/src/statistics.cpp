#include "statistics.hpp"

#include <algorithm>
#include <limits>

namespace sz {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

template <typename T>
Statistics chunk_statistics(const ValueKernels<T>& kernels, const T* src, size_t count) {
  LaneSums<T> sums = {};
  std::fill(sums.min, sums.min + 8, static_cast<T>(kInfinity));
  std::fill(sums.max, sums.max + 8, static_cast<T>(-kInfinity));
  kernels.accumulate(src, count, &sums);
  Statistics chunk;
  chunk.count = count;
  chunk.nonzeros = sums.nonzeros;
  for (int lane = 0; lane < 8; lane++) {
    chunk.sum += sums.sum[lane];
    chunk.sum_squares += sums.squares[lane];
  }
  chunk.min = static_cast<double>(*std::min_element(sums.min, sums.min + 8));
  chunk.max = static_cast<double>(*std::max_element(sums.max, sums.max + 8));
  return chunk;
}

Statistics total_statistics(const std::vector<Statistics>& chunks) {
  Statistics total;
  total.min = kInfinity;
  total.max = -kInfinity;
  for (const Statistics& chunk : chunks) {
    total.count += chunk.count;
    total.nonzeros += chunk.nonzeros;
    total.sum += chunk.sum;
    total.sum_squares += chunk.sum_squares;
    total.min = std::min(total.min, chunk.min);
    total.max = std::max(total.max, chunk.max);
  }
  if (total.min > total.max) total.min = total.max = 0;  // nothing finite
  return total;
}

template Statistics chunk_statistics(const ValueKernels<float>&, const float*, size_t);
template Statistics chunk_statistics(const ValueKernels<double>&, const double*, size_t);

}  // namespace sz
