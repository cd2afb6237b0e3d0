#include "caffe/layers/copies.hpp"

#include <algorithm>
#include <cstring>

#include "caffe/core/parallel.hpp"

namespace caffe {

void copy_unless_shared(const Tensor& from, const Tensor& to) {
  if (!from.shares_buffer(to)) copy_rows(from.data(), 0, to.data(), 0, 1, from.count());
}

void copy_rows(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
               int64_t length) {
  // Threads divide values, not rows: a few long rows keep all of them busy as well.
  parallel_for(rows * length, kParallelGrain, [=](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / length;
      const int64_t at = begin % length;
      const int64_t run = std::min(length - at, end - begin);
      std::memcpy(to + row * to_stride + at, from + row * from_stride + at,
                  static_cast<size_t>(run) * sizeof(float));
      begin += run;
    }
  });
}

}  // namespace caffe
