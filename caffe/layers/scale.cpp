#include "caffe/layers/scale.hpp"

#include <cmath>
#include <limits>

namespace caffe {
namespace {

// Where a slice of x begins among the values of a channel.
int64_t first_of_channel(const Tensor& x, const ChannelShape& shape, const BatchSlice& slice) {
  return x.count() == 0 || x.axes() == 0 ? 0 : slice.first * (shape.per_channel() / x.dim(0));
}

}  // namespace

std::vector<Shape> ScaleLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 2);
  const Shape& x = bottoms[0];
  bottoms_ = bottoms.size();
  axes_ = own_factors() ? parameter_axes(x, options_.axis, options_.num_axes)
                        : matching_axes(x, bottoms[1], options_.axis);
  const Shape factors = axes_.of(x);
  if (parameters.empty()) {
    if (own_factors()) parameters.push_back(std::make_shared<Parameter>(factors));
    if (options_.bias_term) parameters.push_back(std::make_shared<Parameter>(factors));
  }
  check_parameters(parameters, factors, x);
  return {x};
}

Needs ScaleLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(bottoms_, 1);
  if (own_factors()) {
    if (propagation.parameters[0]) needs.bottoms[0] = {Quality::Bounded, BoundRule::Normalised};
  } else {
    if (propagation.bottoms[0]) needs.bottoms[1] = {Quality::Bounded, BoundRule::Propagated};
    if (propagation.bottoms[1]) needs.bottoms[0] = {Quality::Bounded, BoundRule::Propagated};
  }
  return needs;
}

Traits ScaleLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  // Parameters must not run along the batch; a second bottom must.
  const bool sliceable =
      own_factors() ? !axes_.along_batch() : axes_.along_batch() && !options_.bias_term;
  traits.batch_axis = sliceable ? BatchAxis::Independent : BatchAxis::Coupled;
  traits.slices = traits.batch_axis == BatchAxis::Independent;
  traits.any_slices = true;
  traits.error_factor = std::numeric_limits<float>::infinity();
  if (own_factors() && !parameters.empty()) {
    const Tensor& factors = parameters[0]->data;
    traits.inverse = Inverse::Value;
    traits.inverse_error_factor = 1 / typical_factor(factors.data(), factors.count());
    traits.error_factor = 0;
    for (int64_t i = 0; i < factors.count(); ++i) {
      traits.error_factor = std::max(traits.error_factor, std::abs(factors.data()[i]));
    }
  }
  return traits;
}

void ScaleLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  const float* x = src[0].data();
  const float* s = own_factors() ? parameters[0]->data.data() : src[1].data();
  float* y = dst[0].data();
  const ChannelShape shape = axes_.channels(src[0].shape());
  if (context.slice.index == 0) weak_.clear();
  if (context.inverts) {
    weak_[context.slice].keep(x, s, shape, first_of_channel(src[0], shape, context.slice));
  }
  if (options_.bias_term) {
    const float* b = parameters[bias_index()]->data.data();
    for_each_value(shape, [=](int64_t c, int64_t i) { y[i] = x[i] * s[c] + b[c]; });
  } else {
    for_each_value(shape, [=](int64_t c, int64_t i) { y[i] = x[i] * s[c]; });
  }
}

void ScaleLayer::invert(const Tensor& dst, const Tensor& src, const BatchSlice& slice) {
  const float* y = dst.data();
  const float* s = parameters[0]->data.data();
  float* x = src.data();
  const ChannelShape shape = axes_.channels(src.shape());
  if (options_.bias_term) {
    const float* b = parameters[bias_index()]->data.data();
    for_each_value(shape, [=](int64_t c, int64_t i) { x[i] = (y[i] - b[c]) / s[c]; });
  } else {
    for_each_value(shape, [=](int64_t c, int64_t i) { x[i] = y[i] / s[c]; });
  }
  const int64_t first = first_of_channel(src, shape, slice);
  for (const WeakChannels& weak : weak_.all()) weak.restore(x, shape, first);
}

int64_t ScaleLayer::exact_slice() const {
  return parameters.empty() ? 0 : SlicedSums::exact_slice(parameters[0]->data.count());
}

size_t ScaleLayer::saved_bytes() const {
  size_t bytes = 0;
  for (const WeakChannels& weak : weak_.all()) bytes += weak.bytes();
  return bytes;
}

void ScaleLayer::backward(const BackwardArguments& arguments) {
  const Propagation& propagation = arguments.propagation;
  const float* dy = arguments.diff_dst[0].data();
  const ChannelShape shape = axes_.channels(arguments.diff_dst[0].shape());
  // Sums first: dx may be written over dy.
  const bool factors_learn = own_factors() && propagation.parameters[0];
  const bool bias_learns = options_.bias_term && propagation.parameters[bias_index()];
  if (factors_learn || bias_learns) {
    const float* x = factors_learn ? arguments.src[0].data() : nullptr;
    sums_.add(dy, x, shape, arguments.slice.index == 0);
  }
  if (factors_learn && arguments.slice.last) sums_.add_ab_to(*parameters[0]);
  if (bias_learns && arguments.slice.last) sums_.add_a_to(*parameters[bias_index()]);
  if (!own_factors() && arguments.diff_src[1].defined()) {
    channel_products(dy, arguments.src[0].data(), shape, false, arguments.diff_src[1].data());
  }
  if (arguments.diff_src[0].defined()) {
    const float* s = own_factors() ? parameters[0]->data.data() : arguments.src[1].data();
    float* dx = arguments.diff_src[0].data();
    for_each_value(shape, [=](int64_t c, int64_t i) { dx[i] = dy[i] * s[c]; });
  }
}

}  // namespace caffe
