// SoftmaxWithLoss: softmax along one axis and the multinomial logistic loss of the result.
// Bottom 0: scores, seen as [outer, classes, inner]. Bottom 1: labels, outer * inner floats, the
// class of each sample (an integer from 0, or ignore_label). Top 0: the loss, a scalar. Top 1: p.
//   p = softmax(x)                loss = -sum log(max(p[label], FLT_MIN)) / n
//   dx = (p - [c = label]) * w / n, and 0 for samples that are ignored; w is the gradient of top 0
// n, at least 1: Full outer * inner; Valid the samples not ignored; BatchSize outer; None 1.
// Backward reads: the labels, exactly. Keeps p between the passes.
#pragma once

#include "caffe/layers/layer.hpp"
#include "caffe/layers/softmax_rows.hpp"

namespace caffe {

enum class LossNormalization : uint8_t { Full, Valid, BatchSize, None };

struct SoftmaxLossOptions {
  int64_t axis = 1;
  bool has_ignore_label = false;
  int32_t ignore_label = 0;
  LossNormalization normalization = LossNormalization::Valid;
  size_t tops = 1;
};

class SoftmaxLossLayer : public Layer {
 public:
  explicit SoftmaxLossLayer(const SoftmaxLossOptions& options);

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;
  size_t saved_bytes() const override;
  void drop_saved() override { probabilities_ = Tensor(); }

 private:
  static constexpr int64_t kIgnored = -1;
  // The class of sample `index`, or kIgnored; Error if it is neither.
  int64_t class_of(const float* labels, int64_t index, const ChannelShape& shape) const;
  float normalizer(int64_t valid, const ChannelShape& shape) const;

  SoftmaxLossOptions options_;
  Tensor probabilities_;
};

}  // namespace caffe
