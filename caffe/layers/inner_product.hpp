// InnerProduct: one linear map of all axes from `axis` on.
//   bottom M... x K... (axes before and from `axis`) -> top M... x N
//   y = x W^T + b      dx = dy W      dW = dy^T x      db = sums of dy over M
// Parameters: W N x K (K x N when `transpose`), b N.
// Backward reads: x, where the weights learn.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct InnerProductOptions {
  int64_t num_output = 0;
  bool bias = true;
  int64_t axis = 1;
  bool transpose = false;
};

class InnerProductLayer : public Layer {
 public:
  explicit InnerProductLayer(const InnerProductOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;
  int64_t gradient_terms() const override { return rows_; }

 private:
  void add_weights_gradient(const Tensor& src, const Tensor& diff_dst);
  void add_bias_gradient(const Tensor& diff_dst);

  InnerProductOptions options_;
  bool batch_is_rows_ = true;  // axis 0 is not part of what is multiplied
  int64_t rows_ = 0;           // M
  int64_t inputs_ = 0;         // K
};

}  // namespace caffe
