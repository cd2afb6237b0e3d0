#include "caffe/layers/broadcast.hpp"

#include <algorithm>

namespace caffe {

BroadcastAxes parameter_axes(const Shape& bottom, int64_t axis, int64_t num_axes) {
  require(num_axes >= -1, "num_axes is ", num_axes, ", needs -1 or more");
  BroadcastAxes result;
  result.axis = bottom.empty() ? 0 : canonical_axis(axis, bottom.size());
  result.axes = num_axes == -1 ? bottom.size() - result.axis : static_cast<size_t>(num_axes);
  require(result.axis + result.axes <= bottom.size(), "axis ", axis, " and num_axes ", num_axes,
          " reach past the ", bottom.size(), " axes of the bottom");
  return result;
}

BroadcastAxes matching_axes(const Shape& bottom, const Shape& other, int64_t axis) {
  BroadcastAxes result;
  result.axis = other.empty() ? 0 : canonical_axis(axis, bottom.size());
  result.axes = other.size();
  require(result.axis + result.axes <= bottom.size() &&
              std::equal(other.begin(), other.end(), bottom.begin() + result.axis),
          "bottom 1 is ", shape_string(other), ", which does not match bottom 0, ",
          shape_string(bottom), ", from axis ", result.axis, " on");
  return result;
}

void check_parameters(const std::vector<std::shared_ptr<Parameter>>& parameters,
                      const Shape& needed, const Shape& bottom) {
  for (const auto& parameter : parameters) {
    require(parameter->data.shape() == needed, "bottom ", shape_string(bottom),
            " needs parameters of ", shape_string(needed), ", but they are ",
            shape_string(parameter->data.shape()));
  }
}

}  // namespace caffe
