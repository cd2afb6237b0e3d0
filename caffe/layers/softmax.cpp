#include "caffe/layers/softmax.hpp"

#include "caffe/layers/softmax_rows.hpp"

namespace caffe {

std::vector<Shape> SoftmaxLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  softmax_shape(bottoms[0], options_.axis);
  over_batch_ = canonical_axis(options_.axis, bottoms[0].size()) == 0;
  return {bottoms[0]};
}

Needs SoftmaxLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(1, 1);
  if (propagation.bottoms[0]) needs.tops[0].quality = Quality::Exact;
  return needs;
}

Traits SoftmaxLayer::traits() const {
  Traits traits;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  traits.batch_axis = over_batch_ ? BatchAxis::Coupled : BatchAxis::Independent;
  return traits;
}

void SoftmaxLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  softmax(src[0].data(), softmax_shape(src[0].shape(), options_.axis), dst[0].data());
}

void SoftmaxLayer::backward(const BackwardArguments& arguments) {
  if (!arguments.diff_src[0].defined()) return;
  const Tensor& y = arguments.dst[0];
  softmax_gradient(y.data(), arguments.diff_dst[0].data(), softmax_shape(y.shape(), options_.axis),
                   arguments.diff_src[0].data());
}

}  // namespace caffe
