#include "caffe/layers/softmax_rows.hpp"

#include "caffe/core/error.hpp"
#include "caffe/core/simd.hpp"
#include "caffe/core/vector_exp.hpp"

namespace caffe {
namespace {

constexpr int64_t kTile = 64;  // positions worked on side by side

// Calls body(first index, width, stride) for tiles of up to kTile neighbouring positions: their
// values of class c are at first + c * stride + [0, width).
template <typename Body>
void for_each_tile(const ChannelShape& shape, const Body& body) {
  const int64_t tiles = (shape.inner + kTile - 1) / kTile;
  const int64_t values = std::min(kTile, shape.inner) * std::max<int64_t>(shape.channels, 1);
  parallel_for(shape.outer * tiles, kParallelGrain / std::max<int64_t>(values, 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t at = t % tiles * kTile;
                   const int64_t row = t / tiles * shape.channels * shape.inner;
                   body(row + at, std::min(kTile, shape.inner - at), shape.inner);
                 }
               });
}

CAFFE_WIDE
void softmax_row(const float* x, int64_t classes, float* y) {
  float most = x[0];
#pragma omp simd reduction(max : most)
  for (int64_t c = 0; c < classes; ++c) most = x[c] > most ? x[c] : most;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < classes; ++c) {
    const float e = vector_exp(x[c] - most);
    y[c] = e;
    sum += e;
  }
  const float share = 1 / sum;
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) y[c] *= share;
}

CAFFE_WIDE
void softmax_tile(const float* x, int64_t classes, int64_t width, int64_t stride, float* y) {
  float most[kTile];
  float sum[kTile] = {};
  std::copy(x, x + width, most);
  for (int64_t c = 1; c < classes; ++c) {
    const float* row = x + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) most[i] = row[i] > most[i] ? row[i] : most[i];
  }
  for (int64_t c = 0; c < classes; ++c) {
    const float* row = x + c * stride;
    float* out = y + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float e = vector_exp(row[i] - most[i]);
      out[i] = e;
      sum[i] += e;
    }
  }
  for (int64_t i = 0; i < width; ++i) sum[i] = 1 / sum[i];
  for (int64_t c = 0; c < classes; ++c) {
    float* out = y + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] *= sum[i];
  }
}

CAFFE_WIDE
void gradient_row(const float* y, const float* dy, int64_t classes, float* dx) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < classes; ++c) sum += dy[c] * y[c];
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) dx[c] = y[c] * (dy[c] - sum);
}

CAFFE_WIDE
void gradient_tile(const float* y, const float* dy, int64_t classes, int64_t width, int64_t stride,
                   float* dx) {
  float sum[kTile] = {};
  for (int64_t c = 0; c < classes; ++c) {
    const int64_t at = c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) sum[i] += dy[at + i] * y[at + i];
  }
  for (int64_t c = 0; c < classes; ++c) {
    const int64_t at = c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) dx[at + i] = y[at + i] * (dy[at + i] - sum[i]);
  }
}

}  // namespace

void softmax(const float* x, const ChannelShape& shape, float* y) {
  for_each_tile(shape, [=](int64_t first, int64_t width, int64_t stride) {
    if (stride == 1) {
      softmax_row(x + first, shape.channels, y + first);
    } else {
      softmax_tile(x + first, shape.channels, width, stride, y + first);
    }
  });
}

void softmax_gradient(const float* y, const float* dy, const ChannelShape& shape, float* dx) {
  for_each_tile(shape, [=](int64_t first, int64_t width, int64_t stride) {
    if (stride == 1) {
      gradient_row(y + first, dy + first, shape.channels, dx + first);
    } else {
      gradient_tile(y + first, dy + first, shape.channels, width, stride, dx + first);
    }
  });
}

ChannelShape softmax_shape(const Shape& shape, int64_t axis) {
  const size_t at = canonical_axis(axis, shape.size());
  require(shape[at] > 0, "bottom ", shape_string(shape), " has no classes on axis ", at);
  return {shape_count(shape, 0, at), shape[at], shape_count(shape, at + 1, shape.size())};
}

}  // namespace caffe
