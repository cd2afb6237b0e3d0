// Which axes of a bottom its factors or offsets run along: what Scale and Bias have in common.
#pragma once

#include "caffe/layers/channels.hpp"
#include "caffe/layers/layer.hpp"

namespace caffe {

// Axes [axis, axis + axes) of the bottom.
struct BroadcastAxes {
  size_t axis = 0;
  size_t axes = 0;

  Shape of(const Shape& bottom) const {
    return Shape(bottom.begin() + axis, bottom.begin() + axis + axes);
  }
  ChannelShape channels(const Shape& bottom) const { return ChannelShape::of(bottom, axis, axes); }
  bool along_batch() const { return axis == 0 && axes > 0; }
};

// Of a parameter: from `axis` on for `num_axes` axes (-1: to the last; 0: one scalar).
BroadcastAxes parameter_axes(const Shape& bottom, int64_t axis, int64_t num_axes);
// Of another bottom of shape `other`, which must match from `axis` on.
BroadcastAxes matching_axes(const Shape& bottom, const Shape& other, int64_t axis);
// ConfigError unless every parameter has the shape that `bottom` needs.
void check_parameters(const std::vector<std::shared_ptr<Parameter>>& parameters,
                      const Shape& needed, const Shape& bottom);

}  // namespace caffe
