// The softmax function and its gradient along the middle axis of [outer, classes, inner].
#pragma once

#include "caffe/layers/channels.hpp"

namespace caffe {

// y = exp(x - max) / sum(exp(x - max)) over the classes; y may be x.
void softmax(const float* x, const ChannelShape& shape, float* y);
// dx = y * (dy - sum(dy * y)); dx may be dy.
void softmax_gradient(const float* y, const float* dy, const ChannelShape& shape, float* dx);
// The view of `shape` with `axis` (possibly negative) as classes.
ChannelShape softmax_shape(const Shape& shape, int64_t axis);

}  // namespace caffe
