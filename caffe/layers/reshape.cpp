#include "caffe/layers/reshape.hpp"

#include <algorithm>

#include "caffe/layers/copies.hpp"

namespace caffe {

std::vector<Shape> ReshapeLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  const Shape& bottom = bottoms[0];
  const auto axes = static_cast<int64_t>(bottom.size());
  const int64_t first = options_.axis >= 0 ? options_.axis : axes + options_.axis + 1;
  require(first >= 0 && first <= axes, "axis ", options_.axis, " is out of range for ", axes,
          " axes");
  require(options_.num_axes >= -1, "num_axes is ", options_.num_axes, ", needs -1 or more");
  const int64_t end = options_.num_axes == -1 ? axes : first + options_.num_axes;
  require(end <= axes, "axis ", options_.axis, " and num_axes ", options_.num_axes,
          " reach past the ", axes, " axes of the bottom");

  Shape top(bottom.begin(), bottom.begin() + first);
  for (size_t i = 0; i < options_.dims.size(); ++i) {
    const int64_t dim = options_.dims[i];
    const int64_t same = first + static_cast<int64_t>(i);
    require(dim >= -1, "dim ", i, " of the shape is ", dim, ", needs -1 or more");
    require(dim != 0 || same < axes, "dim ", i, " of the shape is 0, but the bottom ",
            shape_string(bottom), " has no axis ", same, " to copy");
    top.push_back(dim == 0 ? bottom[same] : dim);
  }
  top.insert(top.end(), bottom.begin() + end, bottom.end());

  const int64_t count = shape_count(bottom);
  const auto unknown = std::find(top.begin(), top.end(), -1);
  if (unknown != top.end()) {
    require(std::count(top.begin(), top.end(), -1) == 1, "more than one dim of the shape is -1");
    *unknown = 1;
    const int64_t known = shape_count(top);
    require(known > 0 && count % known == 0, "the bottom's ", count,
            " values do not divide by the other dims' ", known);
    *unknown = count / known;
  }
  require(shape_count(top) == count, "cannot give bottom ", shape_string(bottom), " the shape ",
          shape_string(top), ": the number of values differs");
  return {top};
}

Needs ReshapeLayer::needs(const Propagation&) const {
  return no_needs(1, 1);
}

Traits ReshapeLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.keeps_sign = true;
  traits.backward_in_place = true;
  traits.alias = true;
  return traits;
}

void ReshapeLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  copy_unless_shared(src[0], dst[0]);
}

void ReshapeLayer::backward(const BackwardArguments& arguments) {
  if (!arguments.diff_src[0].defined()) return;
  copy_unless_shared(arguments.diff_dst[0], arguments.diff_src[0]);
}

}  // namespace caffe
