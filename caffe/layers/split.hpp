// Split: one value for several readers. The tops are the bottom's buffer; none may be written to.
//   y_k = x      dx = sum_k dy_k
// Backward reads: nothing.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct SplitOptions {
  size_t tops = 2;
};

class SplitLayer : public Layer {
 public:
  explicit SplitLayer(const SplitOptions& options);

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  SplitOptions options_;
};

}  // namespace caffe
