// Eltwise: combines two or more bottoms of one shape, element by element.
//   Sum:     y = sum_k coeff_k * x_k         dx_k = coeff_k * dy
//   Product: y = prod_k x_k                  dx_k = dy * prod_{j != k} x_j
//   Maximum: y = max_k x_k                   dx_k = k is the bottom that y came from ? dy : 0
// Of equal values Maximum takes bottom 1 before bottom 0, and any later one last.
// Caffe's stable_prod_grad: false asks for dx_k = dy * y / x_k: the same but for rounding and a
// division by zero, so there is one way here, the stable one.
// Backward reads: for Product the bottoms that some wanted dx_k multiplies, otherwise nothing.
// Maximum keeps the number of the winner, ceil(log2(bottoms)) bits an element.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

enum class EltwiseOperation : uint8_t { Product, Sum, Maximum };

struct EltwiseOptions {
  EltwiseOperation operation = EltwiseOperation::Sum;
  std::vector<float> coeff;  // of Sum; empty: all 1
};

class EltwiseLayer : public Layer {
 public:
  explicit EltwiseLayer(const EltwiseOptions& options);

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;
  size_t saved_bytes() const override;
  void drop_saved() override { winners_ = nullptr; }

 private:
  float coeff(size_t bottom) const;
  void take_maximum(const Tensors& src, const Tensor& dst, bool save);
  void scatter_to_winners(const BackwardArguments& arguments) const;
  // Where the numbers of elements from `first`, a multiple of 8, on are kept.
  uint8_t* packed_winners(int64_t first, int bits) const;

  EltwiseOptions options_;
  size_t bottoms_ = 0;              // set by reshape()
  std::shared_ptr<Block> winners_;  // packed numbers of the bottoms that Maximum took
};

}  // namespace caffe
