// Softmax along one axis. Bottom and top of one shape.
//   y_c = exp(x_c) / sum_k exp(x_k)      dx_c = y_c * (dy_c - sum_k dy_k * y_k)
// Backward reads: y, exactly.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct SoftmaxOptions {
  int64_t axis = 1;
};

class SoftmaxLayer : public Layer {
 public:
  explicit SoftmaxLayer(const SoftmaxOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  SoftmaxOptions options_;
  bool over_batch_ = false;  // the axis is axis 0; set by reshape()
};

}  // namespace caffe
