#include "caffe/layers/flatten.hpp"

#include "caffe/layers/copies.hpp"

namespace caffe {

std::vector<Shape> FlattenLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  const Shape& bottom = bottoms[0];
  const size_t first = canonical_axis(options_.axis, bottom.size());
  const size_t last = canonical_axis(options_.end_axis, bottom.size());
  require(first <= last, "axis ", options_.axis, " comes after end_axis ", options_.end_axis,
          " in a bottom of ", bottom.size(), " axes");
  folds_batch_ = first == 0 && last > 0;
  Shape top(bottom.begin(), bottom.begin() + first);
  top.push_back(shape_count(bottom, first, last + 1));
  top.insert(top.end(), bottom.begin() + last + 1, bottom.end());
  return {top};
}

Needs FlattenLayer::needs(const Propagation&) const {
  return no_needs(1, 1);
}

Traits FlattenLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.keeps_sign = true;
  traits.backward_in_place = true;
  traits.alias = true;
  traits.batch_axis = folds_batch_ ? BatchAxis::Coupled : BatchAxis::Independent;
  traits.slices = !folds_batch_;
  return traits;
}

void FlattenLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  copy_unless_shared(src[0], dst[0]);
}

void FlattenLayer::backward(const BackwardArguments& arguments) {
  if (!arguments.diff_src[0].defined()) return;
  copy_unless_shared(arguments.diff_dst[0], arguments.diff_src[0]);
}

}  // namespace caffe
