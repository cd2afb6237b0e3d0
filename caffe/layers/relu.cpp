#include "caffe/layers/relu.hpp"

#include <algorithm>
#include <cmath>

#include "caffe/layers/masks.hpp"

namespace caffe {
std::vector<Shape> ReLULayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  return {bottoms[0]};
}

Needs ReLULayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(1, 1);
  if (propagation.bottoms[0]) {
    (reads_bottom() ? needs.bottoms : needs.tops)[0].quality = Quality::Sign;
  }
  return needs;
}

Traits ReLULayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.keeps_sign = options_.negative_slope >= 0;
  traits.rectifies = options_.negative_slope == 0;
  traits.slices = true;
  traits.forward_in_place = !reads_bottom();
  traits.backward_in_place = true;
  traits.batch_axis = BatchAxis::Independent;
  traits.error_factor = std::max(1.0f, std::abs(options_.negative_slope));
  return traits;
}

void ReLULayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  const float* x = src[0].data();
  float* y = dst[0].data();
  const float slope = options_.negative_slope;
  // The comparison lets NaN through. A slope of 0 must give +0, not -0: zeros are what compresses.
  parallel_for(src[0].count(), kParallelGrain, [=](int64_t begin, int64_t end) {
    if (slope == 0) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] <= 0 ? 0.0f : x[i];
    } else {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] <= 0 ? slope * x[i] : x[i];
    }
  });
}

void ReLULayer::backward(const BackwardArguments& arguments) {
  if (!arguments.diff_src[0].defined()) return;
  const Tensor& sign = reads_bottom() ? arguments.src[0] : arguments.dst[0];
  const float* dy = arguments.diff_dst[0].data();
  float* dx = arguments.diff_src[0].data();
  const float slope = options_.negative_slope;
  if (sign.is_mask()) {
    pass_masked(sign.count(), sign.mask_words(), slope, dy, dx);
    return;
  }
  const float* s = sign.data();
  parallel_for(sign.count(), kParallelGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float passed = dy[i];
      const float damped = slope * passed;  // apart: compilers do not vectorise a choice to load
      dx[i] = s[i] > 0 ? passed : damped;
    }
  });
}

}  // namespace caffe
