#include "caffe/core/random.hpp"
#include "caffe/layers/pooling_kernels.hpp"

namespace caffe {
namespace {

constexpr float kUnit = 1.0f / 4294967296.0f;  // makes a 32-bit number one from 0 to 1

// Calls body(output, first pixel, rows, columns) for every window, clipped at the plane's edges.
template <typename Body>
void for_each_window(const PoolPlane& p, const Body& body) {
  for (int64_t o = 0; o < p.out_size(); ++o) {
    const int64_t top = o / p.out_width * p.stride_h;
    const int64_t left = o % p.out_width * p.stride_w;
    body(o, top * p.width + left, std::min(p.kernel_h, p.height - top),
         std::min(p.kernel_w, p.width - left));
  }
}

// The code of the value at which the running sum of those above 0 passes `threshold`.
int32_t take(const PoolPlane& p, const float* window, int64_t rows, int64_t columns,
             float threshold) {
  int32_t taken = 0;
  float sum = 0;
  bool passed = false;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const float value = window[i * p.width + j];
      const auto code = static_cast<int32_t>(i * p.kernel_w + j);
      if (value != value) return code;
      if (passed || !(value > 0)) continue;
      sum += value;
      taken = code;  // the last one, should rounding keep the sum from passing
      passed = sum > threshold;
    }
  }
  return taken;
}

}  // namespace

void stochastic_pool(const PoolPlane& p, const WindowNumbers& numbers, const float* x, float* y,
                     int32_t* codes) {
  PhiloxBlock block = {};
  uint64_t group = ~uint64_t{0};
  for_each_window(p, [&](int64_t o, int64_t corner, int64_t rows, int64_t columns) {
    const float* window = x + corner;
    float sum = 0;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) sum += std::max(window[i * p.width + j], 0.0f);
    }
    const auto place = static_cast<uint64_t>(numbers.first + o);
    if (place / 4 != group) {
      group = place / 4;
      block = random_group(numbers.key, numbers.draw, group);
    }
    const float threshold = static_cast<float>(block[place % 4]) * kUnit * sum;
    codes[o] = take(p, window, rows, columns, threshold);
    y[o] = window[codes[o] / p.kernel_w * p.width + codes[o] % p.kernel_w];
  });
}

void weighted_pool(const PoolPlane& p, const float* x, float* y) {
  for_each_window(p, [&](int64_t o, int64_t corner, int64_t rows, int64_t columns) {
    float sum = 0;
    float squares = 0;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const float value = x[corner + i * p.width + j];
        sum += value;
        squares += value * value;
      }
    }
    y[o] = sum == 0 ? 0 : squares / sum;
  });
}

}  // namespace caffe
