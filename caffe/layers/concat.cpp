#include "caffe/layers/concat.hpp"

#include "caffe/layers/copies.hpp"

namespace caffe {

std::vector<Shape> ConcatLayer::reshape(const std::vector<Shape>& bottoms) {
  require(!bottoms.empty(), "has no bottoms, needs at least 1");
  axis_ = canonical_axis(options_.axis, bottoms[0].size());
  Shape top = bottoms[0];
  for (size_t k = 1; k < bottoms.size(); ++k) {
    Shape expected = bottoms[0];
    if (bottoms[k].size() == expected.size()) expected[axis_] = bottoms[k][axis_];
    require(bottoms[k] == expected, "bottom ", k, " is ", shape_string(bottoms[k]),
            ", which differs from bottom 0, ", shape_string(bottoms[0]),
            ", in more than the length of axis ", axis_);
    top[axis_] += bottoms[k][axis_];
  }
  shapes_ = bottoms;
  return {top};
}

Needs ConcatLayer::needs(const Propagation& propagation) const {
  return no_needs(propagation.bottoms.size(), 1);
}

Traits ConcatLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.keeps_sign = true;
  traits.batch_axis = axis_ == 0 ? BatchAxis::Coupled : BatchAxis::Independent;
  traits.slices = axis_ != 0;
  return traits;
}

void ConcatLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  const int64_t stride = dst[0].count(axis_, dst[0].axes());
  float* to = dst[0].data();
  for (const Tensor& from : src) {
    const int64_t length = from.count(axis_, from.axes());
    copy_rows(from.data(), length, to, stride, from.count(0, axis_), length);
    to += length;
  }
}

void ConcatLayer::backward(const BackwardArguments& arguments) {
  const Tensor& dy = arguments.diff_dst[0];
  const int64_t stride = dy.count(axis_, dy.axes());
  const float* from = dy.data();
  for (size_t k = 0; k < shapes_.size(); ++k) {
    const int64_t length = shape_count(shapes_[k], axis_, shapes_[k].size());  // not of the batch
    const Tensor& to = arguments.diff_src[k];
    if (to.defined()) {
      copy_rows(from, stride, to.data(), length, to.count(0, axis_), length);
    }
    from += length;
  }
}

}  // namespace caffe
