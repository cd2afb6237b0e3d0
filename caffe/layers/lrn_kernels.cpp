#include "caffe/layers/lrn_kernels.hpp"

#include <algorithm>
#include <cmath>

#include "caffe/core/simd.hpp"

namespace caffe {
namespace {

// column[i] += sign * x[i]^2
CAFFE_WIDE void add_squares(const float* x, double sign, int64_t width, double* column) {
  for (int64_t i = 0; i < width; ++i) {
    column[i] += sign * (static_cast<double>(x[i]) * static_cast<double>(x[i]));
  }
}

CAFFE_WIDE void add_values(const float* x, double sign, int64_t width, double* column) {
  for (int64_t i = 0; i < width; ++i) column[i] += sign * static_cast<double>(x[i]);
}

// window[i] = sum of column[i - reach .. i + reach], of those that exist.
CAFFE_WIDE void add_beside(const double* column, int64_t reach, int64_t width, double* window) {
  std::copy_n(column, width, window);
  for (int64_t away = 1; away <= std::min(reach, width - 1); ++away) {
    for (int64_t i = away; i < width; ++i) window[i] += column[i - away];
    for (int64_t i = 0; i < width - away; ++i) window[i] += column[i + away];
  }
}

CAFFE_WIDE void scale_of(const double* window, float base, float factor, int64_t width,
                         float* scale) {
  for (int64_t i = 0; i < width; ++i) scale[i] = base + factor * static_cast<float>(window[i]);
}

// power[i] = scale[i]^-beta
CAFFE_WIDE void inverse_power(const float* scale, float beta, int64_t width, float* power) {
  if (beta == 0.75f) {
    for (int64_t i = 0; i < width; ++i) {
      const float root = std::sqrt(scale[i]);
      power[i] = 1.0f / (root * std::sqrt(root));
    }
  } else {
    for (int64_t i = 0; i < width; ++i) power[i] = std::pow(scale[i], -beta);
  }
}

CAFFE_WIDE void multiply(const float* a, const float* b, int64_t width, float* product) {
  for (int64_t i = 0; i < width; ++i) product[i] = a[i] * b[i];
}

// ratio[i] = dy x s^(-beta-1)
CAFFE_WIDE void ratio_of(const float* dy, const float* x, const float* power, const float* scale,
                         int64_t width, float* ratio) {
  for (int64_t i = 0; i < width; ++i) ratio[i] = dy[i] * x[i] * power[i] / scale[i];
}

CAFFE_WIDE void gradient_of(const float* dy, const float* x, const float* power,
                            const double* window, float factor, int64_t width, float* dx) {
  for (int64_t i = 0; i < width; ++i) {
    dx[i] = dy[i] * power[i] - factor * x[i] * static_cast<float>(window[i]);
  }
}

using AddRow = void (*)(const float*, double, int64_t, double*);

// The window's sums for one row after the other.
class SlidingSum {
 public:
  // `scratch`: 2 * width doubles.
  SlidingSum(const LRNTile& tile, AddRow add, const float* values, int64_t stride, double* scratch)
      : tile_(tile),
        add_(add),
        values_(values),
        stride_(stride),
        column_(scratch),
        window_(scratch + tile.width) {
    std::fill_n(column_, tile.width, 0.0);
    for (int64_t row = 0; row < std::min(tile.reach, tile.rows); ++row) enter(row, 1);
  }

  // The sums around the next row, the first time those around row 0.
  const double* next() {
    if (row_ + tile_.reach < tile_.rows) enter(row_ + tile_.reach, 1);
    if (row_ > tile_.reach) enter(row_ - tile_.reach - 1, -1);
    ++row_;
    if (tile_.reach_beside == 0) return column_;
    add_beside(column_, tile_.reach_beside, tile_.width, window_);
    return window_;
  }

 private:
  void enter(int64_t row, double sign) {
    add_(values_ + row * stride_, sign, tile_.width, column_);
  }

  const LRNTile& tile_;
  AddRow add_;
  const float* values_;
  int64_t stride_;
  double* column_;
  double* window_;
  int64_t row_ = 0;
};

}  // namespace

size_t lrn_forward_scratch(int64_t width) {
  return static_cast<size_t>(3 * width);
}

size_t lrn_backward_scratch(int64_t rows, int64_t width) {
  return static_cast<size_t>((3 + rows) * width);
}

void lrn_forward(const LRNTile& tile, const float* x, float* y, double* scratch) {
  SlidingSum squares(tile, add_squares, x, tile.stride, scratch);
  auto* scale = reinterpret_cast<float*>(scratch + 2 * tile.width);
  float* power = scale + tile.width;
  for (int64_t row = 0; row < tile.rows; ++row) {
    scale_of(squares.next(), tile.base, tile.factor, tile.width, scale);
    inverse_power(scale, tile.beta, tile.width, power);
    multiply(x + row * tile.stride, power, tile.width, y + row * tile.stride);
  }
}

void lrn_backward(const LRNTile& tile, const float* x, const float* dy, float* dx,
                  double* scratch) {
  auto* scale = reinterpret_cast<float*>(scratch + 2 * tile.width);
  auto* powers = reinterpret_cast<float*>(scratch + 3 * tile.width);
  float* ratios = powers + tile.rows * tile.width;
  SlidingSum squares(tile, add_squares, x, tile.stride, scratch);
  for (int64_t row = 0; row < tile.rows; ++row) {
    float* power = powers + row * tile.width;
    scale_of(squares.next(), tile.base, tile.factor, tile.width, scale);
    inverse_power(scale, tile.beta, tile.width, power);
    ratio_of(dy + row * tile.stride, x + row * tile.stride, power, scale, tile.width,
             ratios + row * tile.width);
  }
  SlidingSum sums(tile, add_values, ratios, tile.width, scratch);
  const float factor = 2 * tile.beta * tile.factor;
  for (int64_t row = 0; row < tile.rows; ++row) {
    gradient_of(dy + row * tile.stride, x + row * tile.stride, powers + row * tile.width,
                sums.next(), factor, tile.width, dx + row * tile.stride);
  }
}

}  // namespace caffe
