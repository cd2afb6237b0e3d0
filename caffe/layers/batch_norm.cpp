#include "caffe/layers/batch_norm.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace caffe {
namespace {

ChannelShape channel_shape(const Shape& shape) {
  return shape.size() == 1 ? ChannelShape::of(shape, 0, 0) : ChannelShape::of(shape, 1, 1);
}

float inverse_std(float variance, float eps) {
  return 1.0f / std::sqrt(variance + eps);
}

// `statistics`: the means of all channels, then 1 / std of all.
void normalise(const Tensor& src, const float* statistics, const Tensor& dst) {
  const ChannelShape shape = channel_shape(src.shape());
  const float* mean = statistics;
  const float* inverse = statistics + shape.channels;
  const float* x = src.data();
  float* y = dst.data();
  for_each_value(shape, [=](int64_t c, int64_t i) { y[i] = (x[i] - mean[c]) * inverse[c]; });
}

}  // namespace

BatchNormLayer::BatchNormLayer(const BatchNormOptions& options) : options_(options) {
  require(options.eps > 0, "eps is ", options.eps, ", needs to be positive");
  const float fraction = options.moving_average_fraction;
  require(fraction >= 0 && fraction <= 1, "moving_average_fraction is ", fraction,
          ", needs to be from 0 to 1");
}

std::vector<Shape> BatchNormLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  require(!bottoms[0].empty(), "bottom is a scalar, needs at least 1 axis");
  const int64_t channels = bottoms[0].size() == 1 ? 1 : bottoms[0][1];
  if (parameters.empty()) {
    for (const int64_t length : {channels, channels, int64_t{1}}) {
      parameters.push_back(std::make_shared<Parameter>(Shape{length}));
    }
  }
  require(parameters[0]->data.count() == channels, "bottom has ", channels,
          " channels, but the statistics are of ", parameters[0]->data.count());
  return {bottoms[0]};
}

Needs BatchNormLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(1, 1);
  if (propagation.bottoms[0] && !options_.use_global_stats) {
    needs.tops[0] = {Quality::Bounded, BoundRule::Normalised};
  }
  return needs;
}

Traits BatchNormLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  if (options_.use_global_stats) {
    traits.batch_axis = BatchAxis::Independent;
    traits.slices = true;
  } else {
    traits.sums_first = true;
  }
  // Of a kept bottom, whose channels differ in scale, the narrowest would set the bound.
  traits.error_factor = std::numeric_limits<float>::infinity();
  return traits;
}

void BatchNormLayer::global_statistics(float* mean, float* inverse) const {
  const float factor = parameters[2]->data.data()[0];
  const float share = factor == 0 ? 0 : 1 / factor;
  const float* sum_mean = parameters[0]->data.data();
  const float* sum_variance = parameters[1]->data.data();
  for (int64_t c = 0; c < parameters[0]->data.count(); ++c) {
    if (mean != nullptr) mean[c] = sum_mean[c] * share;
    inverse[c] = inverse_std(sum_variance[c] * share, options_.eps);
  }
}

void BatchNormLayer::update_running_statistics(const float* mean, const float* variance,
                                               int64_t m) {
  const float fraction = options_.moving_average_fraction;
  const float unbiased = m > 1 ? static_cast<float>(m) / static_cast<float>(m - 1) : 1.0f;
  float* sum_mean = parameters[0]->data.data();
  float* sum_variance = parameters[1]->data.data();
  float& factor = parameters[2]->data.data()[0];
  for (int64_t c = 0; c < parameters[0]->data.count(); ++c) {
    sum_mean[c] = fraction * sum_mean[c] + mean[c];
    sum_variance[c] = fraction * sum_variance[c] + unbiased * variance[c];
  }
  factor = fraction * factor + 1;
}

void BatchNormLayer::forward(const Tensors& src, const Tensors& dst,
                             const ForwardContext& context) {
  if (src[0].count() == 0) return;
  const ChannelShape shape = channel_shape(src[0].shape());
  const Tensor statistics = Tensor::make({2, shape.channels}, MemoryKind::Workspace);
  float* mean = statistics.data();
  float* inverse = mean + shape.channels;
  const float* x = src[0].data();
  if (options_.use_global_stats) {
    global_statistics(mean, inverse);
  } else {
    float* variance = inverse;
    channel_moments(x, shape, mean, variance);
    update_running_statistics(mean, variance, shape.per_channel());
    for (int64_t c = 0; c < shape.channels; ++c)
      inverse[c] = inverse_std(variance[c], options_.eps);
    if (context.save_for_backward) {
      statistics_ = Tensor::make({2, shape.channels}, MemoryKind::StoredActivations);
      std::memcpy(statistics_.data(), mean, statistics_.bytes());
    }
  }
  normalise(src[0], mean, dst[0]);
}

void BatchNormLayer::rerun(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  if (options_.use_global_stats) {
    forward(src, dst, context);
  } else if (src[0].count() > 0) {
    normalise(src[0], saved_statistics().data(), dst[0]);
  }
}

const Tensor& BatchNormLayer::saved_statistics() const {
  if (!statistics_.defined()) throw Error("backward without a forward pass that saved its state");
  return statistics_;
}

void BatchNormLayer::add_up(const BackwardArguments& arguments) {
  const Tensor& diff_dst = arguments.diff_dst[0];
  sums_.add(diff_dst.data(), arguments.dst[0].data(), channel_shape(diff_dst.shape()),
            arguments.slice.index == 0);
}

void BatchNormLayer::backward(const BackwardArguments& arguments) {
  const Tensor& diff_src = arguments.diff_src[0];
  if (!diff_src.defined() || diff_src.count() == 0) return;
  const ChannelShape shape = channel_shape(diff_src.shape());
  const float* dy = arguments.diff_dst[0].data();
  float* dx = diff_src.data();
  if (options_.use_global_stats) {
    const Tensor statistics = Tensor::make({shape.channels}, MemoryKind::Workspace);
    float* inverse = statistics.data();
    global_statistics(nullptr, inverse);
    for_each_value(shape, [=](int64_t c, int64_t i) { dx[i] = dy[i] * inverse[c]; });
    return;
  }
  const float* y = arguments.dst[0].data();
  const float* inverse = saved_statistics().data() + shape.channels;
  if (arguments.slice.whole()) add_up(arguments);
  const Tensor means = Tensor::make({2, shape.channels}, MemoryKind::Workspace);
  float* mean_dy = means.data();
  float* mean_dy_y = mean_dy + shape.channels;
  const float share = 1.0f / static_cast<float>(sums_.per_channel());
  for (int64_t c = 0; c < shape.channels; ++c) {
    mean_dy[c] = sums_.a(c) * share;
    mean_dy_y[c] = sums_.ab(c) * share;
  }
  for_each_value(shape, [=](int64_t c, int64_t i) {
    dx[i] = (dy[i] - mean_dy[c] - y[i] * mean_dy_y[c]) * inverse[c];
  });
}

int64_t BatchNormLayer::exact_slice() const {
  return SlicedSums::exact_slice(parameters[0]->data.count());
}

size_t BatchNormLayer::saved_bytes() const {
  return statistics_.defined() ? statistics_.bytes() : 0;
}

}  // namespace caffe
