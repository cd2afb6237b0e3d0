// Pooling of one plane (one channel of one image), both ways.
#pragma once

#include <algorithm>
#include <cstdint>

namespace caffe {

// Sizes are height then width. Every window reaches at least one pixel of the plane.
struct PoolPlane {
  int64_t height = 0, width = 0;
  int64_t out_height = 0, out_width = 0;
  int64_t kernel_h = 0, kernel_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;

  int64_t size() const { return height * width; }
  int64_t out_size() const { return out_height * out_width; }
  bool covers_all() const {
    return out_size() == 1 && pad_h == 0 && pad_w == 0 && kernel_h == height && kernel_w == width;
  }
};

// Of `out` windows along one axis those whose pixel at `offset` lies in the plane: where
// position * stride - pad + offset is within [0, size).
struct WindowRange {
  int64_t begin, end;
};

inline WindowRange windows_inside(int64_t out, int64_t stride, int64_t pad, int64_t offset,
                                  int64_t size) {
  const int64_t first = std::max<int64_t>(0, pad - offset + stride - 1) / stride;
  const int64_t last = size - 1 + pad - offset;
  return {first, last < 0 ? first : std::max(first, std::min(out, last / stride + 1))};
}

// codes[o] is where in its window output o was found: row * kernel_w + column. The first of equal
// values in that order wins; NaN wins over everything.
void max_pool(const PoolPlane& plane, const float* x, float* y, int32_t* codes);
// offsets[code]: the code's place in the plane, from the window's corner.
void max_pool_backward(const PoolPlane& plane, const float* dy, const int32_t* codes,
                       const int32_t* offsets, float* dx);

// y[o] = the value of x that window o took.
void max_pool_gather(const PoolPlane& plane, const float* x, const int32_t* codes,
                     const int32_t* offsets, float* y);

// The random numbers of a plane's windows: each follows from the key, the draw and the window's
// place in the whole batch.
struct WindowNumbers {
  uint64_t key = 0;
  uint64_t draw = 0;
  int64_t first = 0;  // place of the plane's first window
};
// Takes one value of each window with a probability in proportion to it; values at or below 0 are
// not taken while there are others. codes[o] as max_pool(); the first NaN wins over everything.
// No padding.
void stochastic_pool(const PoolPlane& plane, const WindowNumbers& numbers, const float* x, float* y,
                     int32_t* codes);
// The mean of that draw: sum(x^2) / sum(x), and 0 for a sum of 0.
void weighted_pool(const PoolPlane& plane, const float* x, float* y);

// widths[o]: columns that windows of output column o reach within the padded plane; the divisor is
// that times the rows.
void average_pool(const PoolPlane& plane, const float* widths, const float* x, float* y);
// `row` is scratch for one row of outputs.
void average_pool_backward(const PoolPlane& plane, const float* widths, const float* dy, float* row,
                           float* dx);

}  // namespace caffe
