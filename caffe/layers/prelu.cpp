#include "caffe/layers/prelu.hpp"

#include <cmath>

namespace caffe {

std::vector<Shape> PReLULayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  const Shape& x = bottoms[0];
  require(x.size() >= 2, "bottom 0 is ", shape_string(x),
          ", needs 2 axes or more: batch, channels and any others");
  const Shape slopes = options_.channel_shared ? Shape{} : Shape{x[1]};
  if (parameters.empty()) parameters.push_back(std::make_shared<Parameter>(slopes));
  require(parameters[0]->data.shape() == slopes, "bottom ", shape_string(x), " needs slopes of ",
          shape_string(slopes), ", but they are ", shape_string(parameters[0]->data.shape()));
  shape_ = ChannelShape::of(x, 1, options_.channel_shared ? 0 : 1);
  return {x};
}

Needs PReLULayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(1, 1);
  if (propagation.parameters[0]) {
    needs.bottoms[0] = {Quality::BoundedSign, BoundRule::Gradient};
  } else if (propagation.bottoms[0]) {
    needs.bottoms[0].quality = Quality::Sign;
  }
  return needs;
}

Traits PReLULayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.backward_in_place = true;
  traits.batch_axis = BatchAxis::Independent;
  if (parameters.empty()) return traits;
  const Tensor& slopes = parameters[0]->data;
  for (int64_t c = 0; c < slopes.count(); ++c) {
    traits.error_factor = std::max(traits.error_factor, std::fabs(slopes.data()[c]));
  }
  return traits;
}

void PReLULayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  const float* x = src[0].data();
  const float* a = parameters[0]->data.data();
  float* y = dst[0].data();
  for_each_value(shape_, [=](int64_t c, int64_t i) {
    const float bent = a[c] * x[i];  // apart: compilers do not vectorise a choice to load
    y[i] = x[i] > 0 ? x[i] : bent;
  });
}

void PReLULayer::backward(const BackwardArguments& arguments) {
  const float* dy = arguments.diff_dst[0].data();
  const Tensor& src = arguments.src[0];
  // The sum first: dx may be written over dy.
  if (arguments.propagation.parameters[0]) {
    Parameter& slopes = *parameters[0];
    float* da = slopes.gradient().data();
    channel_products_below(dy, src.data(), shape_, !slopes.gradient_is_zero, da);
    slopes.gradient_is_zero = false;
  }
  if (!arguments.diff_src[0].defined()) return;
  const float* a = parameters[0]->data.data();
  float* dx = arguments.diff_src[0].data();
  if (src.is_mask()) {
    const uint64_t* words = src.mask_words();
    for_each_value(shape_, [=](int64_t c, int64_t i) {
      const bool positive = (words[i / 64] >> (i % 64) & 1) != 0;
      const float damped = a[c] * dy[i];
      dx[i] = positive ? dy[i] : damped;
    });
    return;
  }
  const float* x = src.data();
  for_each_value(shape_, [=](int64_t c, int64_t i) {
    const float damped = a[c] * dy[i];
    dx[i] = x[i] > 0 ? dy[i] : damped;
  });
}

}  // namespace caffe
