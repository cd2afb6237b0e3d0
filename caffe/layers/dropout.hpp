// Dropout. Bottom and top of any one shape.
//   training: y = keep ? x / (1 - ratio) : 0      dx = keep ? dy / (1 - ratio) : 0
//   test:     y = x                               dx = dy
// keep is true with probability 1 - ratio: a pure function of (random key, forward count, index of
// the element), see caffe/core/random.hpp, so backward works it out again instead of reading a
// mask.
// Backward reads: nothing. Keeps the key and the count of the last forward pass.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct DropoutOptions {
  float ratio = 0.5f;
};

class DropoutLayer : public Layer {
 public:
  explicit DropoutLayer(const DropoutOptions& options);

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void invert(const Tensor& dst, const Tensor& src, const BatchSlice& slice) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  // to = from where kept, scaled; the same buffer may be given twice.
  void drop(const Tensor& from, const Tensor& to, const ForwardContext& context) const;

  DropoutOptions options_;
  PerSlice<ForwardContext> last_;  // of the last forward pass that backward may follow
};

}  // namespace caffe
