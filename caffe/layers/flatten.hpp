// Flatten: folds axes axis..end_axis into one. The top is the bottom's buffer under another shape.
//   y = x      dx = dy
// Backward reads: nothing.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct FlattenOptions {
  int64_t axis = 1;
  int64_t end_axis = -1;
};

class FlattenLayer : public Layer {
 public:
  explicit FlattenLayer(const FlattenOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  FlattenOptions options_;
  bool folds_batch_ = false;  // axis 0 is among the folded; set by reshape()
};

}  // namespace caffe
