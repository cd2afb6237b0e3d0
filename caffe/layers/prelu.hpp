// PReLU: a ReLU with a learned slope for each channel.
// Bottom and top: one shape of at least 2 axes, N x C and any behind.
//   y = x > 0 ? x : a[c] * x      dx = x > 0 ? dy : a[c] * dy
//   da[c] = sum of dy * x over the x that are not above 0
// Parameters: a [C], or a scalar with channel_shared.
// Backward reads: the sign of x for dx, x with its sign where a learns.
#pragma once

#include "caffe/layers/channels.hpp"
#include "caffe/layers/layer.hpp"

namespace caffe {

struct PReLUOptions {
  bool channel_shared = false;
};

class PReLULayer : public Layer {
 public:
  explicit PReLULayer(const PReLUOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;
  int64_t gradient_terms() const override { return shape_.per_channel(); }

 private:
  PReLUOptions options_;
  ChannelShape shape_ = {0, 0, 0};  // set by reshape()
};

}  // namespace caffe
