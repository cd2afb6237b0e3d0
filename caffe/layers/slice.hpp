// Slice: cuts its bottom along one axis, one part a top.
//   y_k = the k-th part of x      dx = [dy_0, dy_1, ...]
// Cuts are where `points` say, in rising order, or make parts of one length if there are none.
// Backward reads: nothing.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

struct SliceOptions {
  int64_t axis = 1;
  Shape points;
  size_t tops = 1;
};

class SliceLayer : public Layer {
 public:
  explicit SliceLayer(const SliceOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  // Where along an axis of `length` each part ends.
  std::vector<int64_t> ends(int64_t length) const;

  SliceOptions options_;
  size_t axis_ = 0;  // set by reshape()
};

}  // namespace caffe
