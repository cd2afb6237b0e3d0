// Pooling: the maximum, the mean or a random value of windows of each channel.
//   bottom N x C x H x W -> top N x C x H' x W'
//   H' = ceil((H + 2 pad - kernel) / stride) + 1 (floor with RoundMode::Floor), less one where the
//   last window would start outside the bottom and its first padding; W' likewise
//   MAX: y = the window's maximum over what lies in the bottom, the first one of equals; NaN stays
//        dx = dy where the maximum was, summed over windows
//        a second top, if wanted: the maximum's index within the H x W plane, as a float
//   AVE: y = sum of the window / its size, padding counted, clipped at H + pad; dx: its transpose
//   STOCHASTIC, training: y = one x of the window, taken with probability x / sum(x); dx as MAX
//   STOCHASTIC, test: y = sum(x^2) / sum(x), without a backward pass. For x >= 0, as after a ReLU.
// Backward reads: nothing; MAX and STOCHASTIC keep the place in the window of the value they took,
// ceil(log2(kernel_h kernel_w)) bits each.
#pragma once

#include <vector>

#include "caffe/layers/layer.hpp"
#include "caffe/layers/pooling_geometry.hpp"
#include "caffe/layers/pooling_index.hpp"

namespace caffe {

class PoolingLayer : public Layer {
 public:
  explicit PoolingLayer(const PoolingOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void rerun(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void invert(const Tensor& dst, const Tensor& src, const BatchSlice& slice) override;
  void backward(const BackwardArguments& arguments) override;
  size_t saved_bytes() const override { return index_.bytes(); }
  void drop_saved() override { index_.clear(); }

 private:
  // body(plane of src, plane of dst) for every plane.
  template <typename Body>
  void for_each_plane(const Tensor& src, const Tensor& dst, const Body& body) const;
  // MAX and STOCHASTIC: one value of each window, whose place is kept.
  void take(const Tensors& src, const Tensors& dst, const ForwardContext& context);
  void give_back(const Tensor& diff_dst, const Tensor& diff_src, const BatchSlice& slice);
  void write_mask(const int32_t* codes, float* mask) const;

  PoolingOptions options_;
  PoolPlane plane_;
  std::vector<float> widths_;     // as average_pool() wants them
  std::vector<int32_t> offsets_;  // as max_pool_backward() wants them; none for AVE
  PoolIndex index_;
};

}  // namespace caffe
