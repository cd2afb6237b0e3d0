// Reduction: one number for all values from one axis on.
// Bottom: any shape, seen as [rows, inner] with the axes from `axis` on as inner. Top: the axes
// before; a scalar for axis 0.
//   Sum:            y = coeff * sum(x)        dx = coeff * dy
//   AbsoluteSum:    y = coeff * sum(|x|)      dx = coeff * dy * sign(x), 0 where x = 0
//   SumOfSquares:   y = coeff * sum(x^2)      dx = 2 * coeff * dy * x
//   Mean:           y = coeff * mean(x)       dx = coeff * dy / inner
// Backward reads: the sign of x with zeros told apart for AbsoluteSum, x within a bound for
// SumOfSquares, else nothing.
#pragma once

#include "caffe/layers/channels.hpp"
#include "caffe/layers/layer.hpp"

namespace caffe {

enum class ReductionOperation : uint8_t { Sum, AbsoluteSum, SumOfSquares, Mean };

struct ReductionOptions {
  ReductionOperation operation = ReductionOperation::Sum;
  int64_t axis = 0;
  float coeff = 1;
};

class ReductionLayer : public Layer {
 public:
  explicit ReductionLayer(const ReductionOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  // What a row's sum is multiplied by.
  float factor() const;

  ReductionOptions options_;
  ChannelShape shape_ = {0, 0, 0};  // [1, rows, inner]; set by reshape(), as is axis_
  size_t axis_ = 0;
};

}  // namespace caffe
