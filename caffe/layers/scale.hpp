// Scale: multiplies by a factor for each channel, and with bias_term adds an offset.
// Bottom 0, top 0: x, y, one shape, seen as [outer, channels, inner]. The factors s are a parameter
// of x's shape from `axis` on for `num_axes` axes (-1: to the last; 0: one scalar), or bottom 1,
// whose shape must match x's from `axis` on. The offset b is a parameter of the factors' shape.
//   y = s * x + b      dx = s * dy      ds = sum(dy * x)      db = sum(dy)
// sums over outer and inner. Parameters: [s] if there is one bottom, [b] with bias_term.
// Backward reads: x for ds, if s learns or bottom 1 wants its gradient; bottom 1 for dx.
// With factors of its own, x = (y - b) / s in backward; what that cannot give is in weak_channels.hpp.
#pragma once

#include "caffe/layers/broadcast.hpp"
#include "caffe/layers/weak_channels.hpp"

namespace caffe {

struct ScaleOptions {
  int64_t axis = 1;
  int64_t num_axes = 1;
  bool bias_term = false;
};

class ScaleLayer : public Layer {
 public:
  explicit ScaleLayer(const ScaleOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void invert(const Tensor& dst, const Tensor& src, const BatchSlice& slice) override;
  void backward(const BackwardArguments& arguments) override;
  int64_t exact_slice() const override;
  size_t saved_bytes() const override;
  void drop_saved() override { weak_.clear(); }

 private:
  bool own_factors() const { return bottoms_ == 1; }
  size_t bias_index() const { return own_factors() ? 1 : 0; }

  ScaleOptions options_;
  size_t bottoms_ = 1;  // these two are set by reshape()
  BroadcastAxes axes_;
  PerSlice<WeakChannels> weak_;
  SlicedSums sums_;  // of dy and dy * x
};

}  // namespace caffe
