// Concat: joins bottoms along one axis; all other axes must agree.
//   y = [x_0, x_1, ...]      dx_k = the part of dy that x_k became
// Backward reads: nothing.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct ConcatOptions {
  int64_t axis = 1;
};

class ConcatLayer : public Layer {
 public:
  explicit ConcatLayer(const ConcatOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  ConcatOptions options_;
  std::vector<Shape> shapes_;  // of the bottoms; these two are set by reshape()
  size_t axis_ = 0;
};

}  // namespace caffe
