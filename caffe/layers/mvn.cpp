#include "caffe/layers/mvn.hpp"

#include <cmath>
#include <limits>

namespace caffe {

MVNLayer::MVNLayer(const MVNOptions& options) : options_(options) {
  require(options.eps > 0, "eps is ", options.eps, ", needs to be positive");
}

std::vector<Shape> MVNLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  const Shape& x = bottoms[0];
  require(!x.empty(), "bottom is a scalar, needs at least 1 axis");
  const size_t row_axes = options_.across_channels || x.size() == 1 ? 1 : 2;
  shape_ = {1, shape_count(x, 0, row_axes), shape_count(x, row_axes, x.size())};
  return {x};
}

Needs MVNLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(1, 1);
  if (propagation.bottoms[0] && options_.normalize_variance) {
    needs.tops[0] = {Quality::Bounded, BoundRule::Normalised};
  }
  return needs;
}

Traits MVNLayer::traits() const {
  Traits traits;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  traits.batch_axis = BatchAxis::Independent;
  if (options_.normalize_variance) {
    traits.error_factor = std::numeric_limits<float>::infinity();  // 1 / s, which has no limit
  } else {
    traits.error_factor = 2;  // of the value and of the mean
  }
  return traits;
}

void MVNLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  if (shape_.count() == 0) return;
  const bool save = context.save_for_backward && options_.normalize_variance;
  const Tensor means = Tensor::make({shape_.channels}, MemoryKind::Workspace);
  const Tensor deviations =
      Tensor::make({shape_.channels}, save ? MemoryKind::StoredActivations : MemoryKind::Workspace);
  const float* x = src[0].data();
  float* y = dst[0].data();
  float* mean = means.data();
  float* deviation = deviations.data();
  channel_moments(x, shape_, mean, deviation);
  if (!options_.normalize_variance) {
    for_each_value(shape_, [=](int64_t row, int64_t i) { y[i] = x[i] - mean[row]; });
    return;
  }
  for (int64_t row = 0; row < shape_.channels; ++row) deviation[row] = std::sqrt(deviation[row]);
  const float eps = options_.eps;
  for_each_value(
      shape_, [=](int64_t row, int64_t i) { y[i] = (x[i] - mean[row]) / (deviation[row] + eps); });
  if (save) std_ = deviations;
}

void MVNLayer::backward(const BackwardArguments& arguments) {
  if (!arguments.diff_src[0].defined() || shape_.count() == 0) return;
  const float* dy = arguments.diff_dst[0].data();
  float* dx = arguments.diff_src[0].data();
  const float share = 1.0f / static_cast<float>(shape_.inner);
  const Tensor sums = Tensor::make({2, shape_.channels}, MemoryKind::Workspace);
  float* mean_dy = sums.data();
  float* mean_dy_y = mean_dy + shape_.channels;
  if (!options_.normalize_variance) {
    channel_sums(dy, shape_, false, mean_dy);
    for_each_value(shape_, [=](int64_t row, int64_t i) { dx[i] = dy[i] - mean_dy[row] * share; });
    return;
  }
  if (!std_.defined()) throw Error("backward without a forward pass that saved its state");
  const float* y = arguments.dst[0].data();
  const float* deviation = std_.data();
  const float eps = options_.eps;
  channel_sums_and_products(dy, y, shape_, mean_dy, mean_dy_y);
  for (int64_t row = 0; row < shape_.channels; ++row) {
    mean_dy[row] *= share;
    const float ratio = deviation[row] > 0 ? (deviation[row] + eps) / deviation[row] : 0.0f;
    mean_dy_y[row] *= share * ratio;
  }
  for_each_value(shape_, [=](int64_t row, int64_t i) {
    dx[i] = (dy[i] - mean_dy[row] - y[i] * mean_dy_y[row]) / (deviation[row] + eps);
  });
}

}  // namespace caffe
