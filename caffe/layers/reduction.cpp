#include "caffe/layers/reduction.hpp"

#include <cmath>
#include <limits>

namespace caffe {

std::vector<Shape> ReductionLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  const Shape& x = bottoms[0];
  axis_ = x.empty() ? 0 : canonical_axis(options_.axis, x.size());
  shape_ = {1, shape_count(x, 0, axis_), shape_count(x, axis_, x.size())};
  return {Shape(x.begin(), x.begin() + axis_)};
}

Needs ReductionLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(1, 1);
  if (!propagation.bottoms[0]) return needs;
  if (options_.operation == ReductionOperation::AbsoluteSum) {
    needs.bottoms[0] = {Quality::BoundedSign, BoundRule::Propagated};
  } else if (options_.operation == ReductionOperation::SumOfSquares) {
    needs.bottoms[0] = {Quality::Bounded, BoundRule::Propagated};
  }
  return needs;
}

Traits ReductionLayer::traits() const {
  Traits traits;
  traits.batch_axis = axis_ == 0 ? BatchAxis::Coupled : BatchAxis::Independent;
  const bool curved = options_.operation == ReductionOperation::SumOfSquares;
  traits.error_factor = curved ? std::numeric_limits<float>::infinity()
                               : std::fabs(factor()) * static_cast<float>(shape_.inner);
  return traits;
}

float ReductionLayer::factor() const {
  if (options_.operation != ReductionOperation::Mean) return options_.coeff;
  return options_.coeff / static_cast<float>(std::max<int64_t>(shape_.inner, 1));
}

void ReductionLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  const float* x = src[0].data();
  float* y = dst[0].data();
  switch (options_.operation) {
    case ReductionOperation::Sum:
    case ReductionOperation::Mean:
      channel_sums(x, shape_, false, y);
      break;
    case ReductionOperation::AbsoluteSum:
      channel_abs_sums(x, shape_, y);
      break;
    case ReductionOperation::SumOfSquares:
      channel_products(x, x, shape_, false, y);
      break;
  }
  for (int64_t row = 0; row < shape_.channels; ++row) y[row] *= factor();
}

void ReductionLayer::backward(const BackwardArguments& arguments) {
  if (!arguments.diff_src[0].defined()) return;
  const float* dy = arguments.diff_dst[0].data();
  float* dx = arguments.diff_src[0].data();
  const float scale = factor();
  if (options_.operation == ReductionOperation::AbsoluteSum) {
    const float* x = arguments.src[0].data();
    for_each_value(shape_, [=](int64_t row, int64_t i) {
      const float step = scale * dy[row];
      dx[i] = x[i] > 0 ? step : x[i] < 0 ? -step : 0.0f;
    });
  } else if (options_.operation == ReductionOperation::SumOfSquares) {
    const float* x = arguments.src[0].data();
    for_each_value(shape_, [=](int64_t row, int64_t i) { dx[i] = 2 * scale * dy[row] * x[i]; });
  } else {
    for_each_value(shape_, [=](int64_t row, int64_t i) { dx[i] = scale * dy[row]; });
  }
}

}  // namespace caffe
