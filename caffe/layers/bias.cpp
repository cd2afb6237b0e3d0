#include "caffe/layers/bias.hpp"

#include "caffe/layers/copies.hpp"

namespace caffe {

std::vector<Shape> BiasLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 2);
  const Shape& x = bottoms[0];
  bottoms_ = bottoms.size();
  axes_ = bottoms_ == 1 ? parameter_axes(x, options_.axis, options_.num_axes)
                        : matching_axes(x, bottoms[1], options_.axis);
  const Shape offsets = axes_.of(x);
  if (parameters.empty() && bottoms_ == 1) {
    parameters.push_back(std::make_shared<Parameter>(offsets));
  }
  check_parameters(parameters, offsets, x);
  return {x};
}

Needs BiasLayer::needs(const Propagation&) const {
  return no_needs(bottoms_, 1);
}

Traits BiasLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  // A parameter must not run along the batch; a second bottom must.
  const bool sliceable = (bottoms_ == 2) == axes_.along_batch();
  traits.batch_axis = sliceable ? BatchAxis::Independent : BatchAxis::Coupled;
  traits.slices = sliceable;
  return traits;
}

void BiasLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  const float* x = src[0].data();
  const float* b = bottoms_ == 1 ? parameters[0]->data.data() : src[1].data();
  float* y = dst[0].data();
  for_each_value(axes_.channels(src[0].shape()), [=](int64_t c, int64_t i) { y[i] = x[i] + b[c]; });
}

void BiasLayer::backward(const BackwardArguments& arguments) {
  const Tensor& diff_dst = arguments.diff_dst[0];
  const ChannelShape shape = axes_.channels(diff_dst.shape());
  if (bottoms_ == 1 && arguments.propagation.parameters[0]) {
    Parameter& bias = *parameters[0];
    float* db = bias.gradient().data();
    channel_sums(diff_dst.data(), shape, !bias.gradient_is_zero, db);
    bias.gradient_is_zero = false;
  }
  if (bottoms_ == 2 && arguments.diff_src[1].defined()) {
    channel_sums(diff_dst.data(), shape, false, arguments.diff_src[1].data());
  }
  if (arguments.diff_src[0].defined()) copy_unless_shared(diff_dst, arguments.diff_src[0]);
}

}  // namespace caffe
