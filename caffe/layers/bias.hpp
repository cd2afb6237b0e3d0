// Bias: adds an offset for each channel.
// Bottom 0, top 0: x, y, one shape, seen as [outer, channels, inner]. The offsets b are a parameter
// of x's shape from `axis` on for `num_axes` axes (-1: to the last; 0: one scalar), or bottom 1,
// whose shape must match x's from `axis` on.
//   y = x + b      dx = dy      db = sum(dy) over outer and inner
// Parameters: b if there is one bottom.
// Backward reads: nothing.
#pragma once

#include "caffe/layers/broadcast.hpp"

namespace caffe {

struct BiasOptions {
  int64_t axis = 1;
  int64_t num_axes = 1;
};

class BiasLayer : public Layer {
 public:
  explicit BiasLayer(const BiasOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  BiasOptions options_;
  size_t bottoms_ = 1;  // these two are set by reshape()
  BroadcastAxes axes_;
};

}  // namespace caffe
