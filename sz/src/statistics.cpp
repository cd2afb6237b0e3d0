#include "statistics.hpp"

#include <algorithm>
#include <limits>

namespace sz {

LaneSums empty_sums() {
  LaneSums sums = {};
  std::fill(sums.min, sums.min + 8, std::numeric_limits<float>::infinity());
  std::fill(sums.max, sums.max + 8, -std::numeric_limits<float>::infinity());
  return sums;
}

void add_chunk(const LaneSums& sums, size_t count, Statistics* total) {
  const float least = *std::min_element(sums.min, sums.min + 8);
  const float most = *std::max_element(sums.max, sums.max + 8);
  if (least <= most) {  // else the chunk has no finite value
    const bool first = total->min > total->max;
    total->min = first ? least : std::min(total->min, least);
    total->max = first ? most : std::max(total->max, most);
  }
  for (int lane = 0; lane < 8; lane++) {
    total->sum += sums.sum[lane];
    total->sum_squares += sums.squares[lane];
  }
  total->nonzeros += sums.nonzeros;
  total->count += count;
}

}  // namespace sz
