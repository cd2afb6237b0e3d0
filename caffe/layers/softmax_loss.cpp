#include "caffe/layers/softmax_loss.hpp"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "caffe/layers/copies.hpp"

namespace caffe {

SoftmaxLossLayer::SoftmaxLossLayer(const SoftmaxLossOptions& options) : options_(options) {
  check_count("tops", options.tops, 1, 2);
}

std::vector<Shape> SoftmaxLossLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 2, 2);
  const ChannelShape shape = softmax_shape(bottoms[0], options_.axis);
  require(shape_count(bottoms[1]) == shape.per_channel(), "bottom 1 holds ",
          shape_count(bottoms[1]), " labels, but bottom 0, ", shape_string(bottoms[0]), ", needs ",
          shape.per_channel(), ": one for each position outside the axis of the classes");
  std::vector<Shape> tops = {Shape{}, bottoms[0]};
  tops.resize(options_.tops);
  return tops;
}

Needs SoftmaxLossLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(2, options_.tops);
  if (propagation.bottoms[0]) needs.bottoms[1].quality = Quality::Exact;
  return needs;
}

Traits SoftmaxLossLayer::traits() const {
  Traits traits;
  traits.differentiable_bottoms = 1;
  return traits;
}

int64_t SoftmaxLossLayer::class_of(const float* labels, int64_t index,
                                   const ChannelShape& shape) const {
  const float label = labels[index];
  const bool fits = label > -2147483648.0f && label < 2147483648.0f;  // NaN does not
  const int32_t value = fits ? static_cast<int32_t>(label) : 0;
  if (fits && options_.has_ignore_label && value == options_.ignore_label) return kIgnored;
  if (!fits || value < 0 || value >= shape.channels) {
    std::string where = message("sample ", index / shape.inner);
    if (shape.inner > 1) where += message(", position ", index % shape.inner);
    throw Error(message("the label of ", where, " is ", label, ", needs to be from 0 to ",
                        shape.channels - 1));
  }
  return value;
}

float SoftmaxLossLayer::normalizer(int64_t valid, const ChannelShape& shape) const {
  int64_t count = 1;
  switch (options_.normalization) {
    case LossNormalization::Full:
      count = shape.per_channel();
      break;
    case LossNormalization::Valid:
      count = valid;
      break;
    case LossNormalization::BatchSize:
      count = shape.outer;
      break;
    case LossNormalization::None:
      break;
  }
  return static_cast<float>(std::max<int64_t>(count, 1));
}

void SoftmaxLossLayer::forward(const Tensors& src, const Tensors& dst,
                               const ForwardContext& context) {
  const ChannelShape shape = softmax_shape(src[0].shape(), options_.axis);
  const float* labels = src[1].data();
  const Tensor probabilities =
      Tensor::make(src[0].shape(), context.save_for_backward ? MemoryKind::StoredActivations
                                                             : MemoryKind::Workspace);
  const float* p = probabilities.data();
  softmax(src[0].data(), shape, probabilities.data());
  double sum = 0;
  int64_t valid = 0;
  for (int64_t i = 0; i < shape.per_channel(); ++i) {
    const int64_t label = class_of(labels, i, shape);
    if (label == kIgnored) continue;
    const int64_t at = (i / shape.inner * shape.channels + label) * shape.inner + i % shape.inner;
    // A comparison that keeps NaN: a diverged net must show it.
    sum -= std::log(p[at] < FLT_MIN ? FLT_MIN : p[at]);
    ++valid;
  }
  dst[0].data()[0] = static_cast<float>(sum / normalizer(valid, shape));
  if (options_.tops > 1) copy_unless_shared(probabilities, dst[1]);
  if (context.save_for_backward) probabilities_ = probabilities;
}

void SoftmaxLossLayer::backward(const BackwardArguments& arguments) {
  // The loss is constant between labels.
  const Tensor& diff_labels = arguments.diff_src[1];
  if (diff_labels.defined()) std::memset(diff_labels.data(), 0, diff_labels.bytes());
  if (!arguments.diff_src[0].defined()) return;
  if (!probabilities_.defined()) {
    throw Error("backward without a forward pass that saved its state");
  }
  const ChannelShape shape = softmax_shape(probabilities_.shape(), options_.axis);
  const float* labels = arguments.src[1].data();
  int64_t valid = 0;
  for (int64_t i = 0; i < shape.per_channel(); ++i) {
    if (class_of(labels, i, shape) != kIgnored) ++valid;
  }
  const float weight = arguments.diff_dst[0].data()[0] / normalizer(valid, shape);
  const float* p = probabilities_.data();
  float* dx = arguments.diff_src[0].data();
  parallel_for(shape.count(), kParallelGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) dx[i] = p[i] * weight;
  });
  for (int64_t i = 0; i < shape.per_channel(); ++i) {
    const int64_t label = class_of(labels, i, shape);
    float* scores = dx + i / shape.inner * shape.channels * shape.inner + i % shape.inner;
    if (label != kIgnored) {
      scores[label * shape.inner] -= weight;
    } else {
      for (int64_t c = 0; c < shape.channels; ++c) scores[c * shape.inner] = 0;
    }
  }
}

size_t SoftmaxLossLayer::saved_bytes() const {
  return probabilities_.defined() ? probabilities_.bytes() : 0;
}

}  // namespace caffe
