// BatchNorm, without the affine part (a Scale layer follows). Bottom and top: one shape, of N x C
// and any axes behind, or of one axis with C = 1. Sums run over all but C, m values a channel.
//   training:     y = (x - mean) / sqrt(var + eps) with the batch's mean and biased variance
//                 dx = (dy - mean(dy) - y * mean(dy * y)) / sqrt(var + eps)
//   global stats: y = (x - sum_mean / factor) / sqrt(sum_var / factor + eps)
//                 dx = dy / sqrt(sum_var / factor + eps)
// Parameters, none of which learns: sum_mean [C], sum_var [C], factor [1]. A pass on the batch's
// statistics multiplies each by moving_average_fraction and adds mean, var * m / (m - 1) and 1.
// Backward reads: y in training (normalised, so a bound in its own std serves), else nothing.
// Keeps the mean and 1 / sqrt(var + eps) of each channel between the passes.
#pragma once

#include "caffe/layers/channels.hpp"
#include "caffe/layers/layer.hpp"

namespace caffe {

struct BatchNormOptions {
  bool use_global_stats = false;
  float moving_average_fraction = 0.999f;
  float eps = 1e-5f;
};

class BatchNormLayer : public Layer {
 public:
  explicit BatchNormLayer(const BatchNormOptions& options);

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void rerun(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void add_up(const BackwardArguments& arguments) override;
  void backward(const BackwardArguments& arguments) override;
  int64_t exact_slice() const override;
  size_t saved_bytes() const override;
  void drop_saved() override { statistics_ = Tensor(); }

 private:
  // Means and 1 / std of the running statistics; `mean` may be null.
  void global_statistics(float* mean, float* inverse_std) const;
  const Tensor& saved_statistics() const;
  void update_running_statistics(const float* mean, const float* variance, int64_t m);

  BatchNormOptions options_;
  // Means and 1 / std [2, C], of the last forward pass in training that was asked to save.
  Tensor statistics_;
  SlicedSums sums_;  // of dy and dy * y
};

}  // namespace caffe
