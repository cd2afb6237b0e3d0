// MVN: mean-variance normalisation of each sample's channels, or with across_channels of each
// sample as a whole. Bottom and top: one shape of N x C and any axes behind, or of one axis with
// C = 1; seen as [rows, inner], with N * C rows or N.
//   s = normalize_variance ? sqrt(mean((x - mean(x))^2)) + eps : 1, over each row
//   y = (x - mean(x)) / s
//   dx = (dy - mean(dy) - y * mean(dy * y) * s / (s - eps)) / s
//   without normalize_variance: dx = dy - mean(dy)
// A row of equal values has s - eps = 0 and y = 0; its dx is (dy - mean(dy)) / s.
// Backward reads: y with normalize_variance (normalised, so a bound in its own std serves), else
// nothing. Keeps the rows' standard deviations between the passes.
#pragma once

#include "caffe/layers/channels.hpp"
#include "caffe/layers/layer.hpp"

namespace caffe {

struct MVNOptions {
  bool normalize_variance = true;
  bool across_channels = false;
  float eps = 1e-9f;
};

class MVNLayer : public Layer {
 public:
  explicit MVNLayer(const MVNOptions& options);

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;
  size_t saved_bytes() const override { return std_.defined() ? std_.bytes() : 0; }
  void drop_saved() override { std_ = Tensor(); }

 private:
  MVNOptions options_;
  ChannelShape shape_ = {0, 0, 0};  // [1, rows, inner]; set by reshape()
  Tensor std_;  // [rows], eps left out, of the last forward pass that was asked to save
};

}  // namespace caffe
