// ReLU. Bottom and top of any one shape.
//   y = x > 0 ? x : slope * x      dx = x > 0 ? dy : slope * dy
// Backward reads: the sign of y (of x when slope < 0).
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct ReLUOptions {
  float negative_slope = 0;
};

class ReLULayer : public Layer {
 public:
  explicit ReLULayer(const ReLUOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  bool reads_bottom() const { return options_.negative_slope < 0; }

  ReLUOptions options_;
};

}  // namespace caffe
