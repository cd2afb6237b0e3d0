// Clip. Bottom and top of any one shape.
//   y = min(max(x, min), max)      dx = min <= x <= max ? dy : 0
// Backward reads: nothing. Keeps one bit a value between the passes: y alone does not tell a value
// at a limit, which passes its gradient on, from one beyond.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct ClipOptions {
  float min = 0;
  float max = 0;
};

class ClipLayer : public Layer {
 public:
  explicit ClipLayer(const ClipOptions& options);

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;
  size_t saved_bytes() const override { return inside_.defined() ? inside_.bytes() : 0; }
  void drop_saved() override { inside_ = Tensor(); }

 private:
  ClipOptions options_;
  Tensor inside_;  // a mask: which values lay within the limits
};

}  // namespace caffe
