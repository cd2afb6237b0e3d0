#include <algorithm>

#include "caffe/core/simd.hpp"
#include "caffe/layers/pooling_kernels.hpp"

namespace caffe {
namespace {

template <int kStride>  // 0: any, as given
[[gnu::always_inline]] inline void add_strided(const float* __restrict x, int64_t count,
                                               int64_t stride, float* __restrict y) {
  const int64_t step = kStride == 0 ? stride : kStride;
  for (int64_t o = 0; o < count; ++o) y[o] += x[o * step];
}

// y[o] += x[o * stride]
CAFFE_WIDE void gather_add(const float* x, int64_t count, int64_t stride, float* y) {
  if (stride == 1) return add_strided<1>(x, count, stride, y);
  if (stride == 2) return add_strided<2>(x, count, stride, y);
  add_strided<0>(x, count, stride, y);
}

// x[o * stride] += y[o]
CAFFE_WIDE void scatter_add(const float* y, int64_t count, int64_t stride, float* x) {
  if (stride == 1) return add_strided<1>(y, count, stride, x);
  for (int64_t o = 0; o < count; ++o) x[o * stride] += y[o];
}

CAFFE_WIDE void divide(const float* dividends, const float* widths, int64_t count, float rows,
                       float* quotients) {
  for (int64_t o = 0; o < count; ++o) quotients[o] = dividends[o] / (widths[o] * rows);
}

CAFFE_WIDE float sum_of(const float* x, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

// Rows that windows of this output row reach within the padded plane.
float rows_of(const PoolPlane& p, int64_t oh) {
  const int64_t top = oh * p.stride_h - p.pad_h;
  return static_cast<float>(std::min(top + p.kernel_h, p.height + p.pad_h) - top);
}

}  // namespace

void average_pool(const PoolPlane& p, const float* widths, const float* x, float* y) {
  if (p.covers_all()) {
    y[0] = sum_of(x, p.size()) / static_cast<float>(p.size());
    return;
  }
  for (int64_t oh = 0; oh < p.out_height; ++oh, y += p.out_width) {
    const int64_t top = oh * p.stride_h - p.pad_h;
    std::fill_n(y, p.out_width, 0.0f);
    const int64_t last = std::min(top + p.kernel_h, p.height);
    for (int64_t row = std::max<int64_t>(top, 0); row < last; ++row) {
      for (int64_t j = 0; j < p.kernel_w; ++j) {
        const WindowRange range = windows_inside(p.out_width, p.stride_w, p.pad_w, j, p.width);
        gather_add(x + row * p.width + range.begin * p.stride_w - p.pad_w + j,
                   range.end - range.begin, p.stride_w, y + range.begin);
      }
    }
    divide(y, widths, p.out_width, rows_of(p, oh), y);
  }
}

void average_pool_backward(const PoolPlane& p, const float* widths, const float* dy, float* row_dy,
                           float* dx) {
  if (p.covers_all()) {
    std::fill_n(dx, p.size(), dy[0] / static_cast<float>(p.size()));
    return;
  }
  std::fill_n(dx, p.size(), 0.0f);
  for (int64_t oh = 0; oh < p.out_height; ++oh, dy += p.out_width) {
    const int64_t top = oh * p.stride_h - p.pad_h;
    divide(dy, widths, p.out_width, rows_of(p, oh), row_dy);
    const int64_t last = std::min(top + p.kernel_h, p.height);
    for (int64_t row = std::max<int64_t>(top, 0); row < last; ++row) {
      for (int64_t j = 0; j < p.kernel_w; ++j) {
        const WindowRange range = windows_inside(p.out_width, p.stride_w, p.pad_w, j, p.width);
        scatter_add(row_dy + range.begin, range.end - range.begin, p.stride_w,
                    dx + row * p.width + range.begin * p.stride_w - p.pad_w + j);
      }
    }
  }
}

}  // namespace caffe
