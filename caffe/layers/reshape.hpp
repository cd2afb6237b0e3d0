// Reshape: gives axes axis .. axis + num_axes - 1 (num_axes -1: to the last) the lengths in `dims`,
// where 0 copies the bottom's length at that place and one -1 is worked out. A negative axis counts
// from behind the last axis. The top is the bottom's buffer under another shape.
//   y = x      dx = dy
// Backward reads: nothing.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct ReshapeOptions {
  Shape dims;
  int64_t axis = 0;
  int64_t num_axes = -1;
};

class ReshapeLayer : public Layer {
 public:
  explicit ReshapeLayer(const ReshapeOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  ReshapeOptions options_;
};

}  // namespace caffe
