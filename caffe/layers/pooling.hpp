// Pooling: the maximum or the mean of windows of each channel.
//   bottom N x C x H x W -> top N x C x H' x W'
//   H' = ceil((H + 2 pad - kernel) / stride) + 1 (floor with RoundMode::Floor), less one where the
//   last window would start outside the bottom and its first padding; W' likewise
//   MAX: y = the window's maximum over what lies in the bottom, the first one of equals; NaN stays
//        dx = dy where the maximum was, summed over windows
//        a second top, if wanted: the maximum's index within the H x W plane, as a float
//   AVE: y = sum of the window / its size, padding counted, clipped at H + pad; dx: its transpose
// Backward reads: nothing; MAX keeps its index in the window, ceil(log2(kernel_h kernel_w)) bits.
#pragma once

#include <vector>

#include "caffe/layers/layer.hpp"
#include "caffe/layers/pooling_kernels.hpp"

namespace caffe {

enum class PoolMethod : uint8_t { Max, Average };
enum class RoundMode : uint8_t { Ceil, Floor };

struct PoolingOptions {
  PoolMethod method = PoolMethod::Max;
  bool global = false;  // one window that is the whole plane; kernel is not read
  int64_t kernel_h = 0, kernel_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;
  RoundMode round = RoundMode::Ceil;
  bool mask_top = false;
};

class PoolingLayer : public Layer {
 public:
  explicit PoolingLayer(const PoolingOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;
  size_t saved_bytes() const override { return index_ ? index_->bytes() : 0; }
  void drop_saved() override { index_.reset(); }

 private:
  void max_forward(const Tensors& src, const Tensors& dst, bool save);
  void max_backward(const Tensor& diff_dst, const Tensor& diff_src);
  void write_mask(const int32_t* codes, float* mask) const;

  PoolingOptions options_;
  int64_t planes_ = 0;  // N * C
  PoolPlane plane_;
  std::vector<float> widths_;     // as average_pool() wants them
  std::vector<int32_t> offsets_;  // as max_pool_backward() wants them
  int bits_ = 0;                  // of one code in index_
  std::shared_ptr<Block> index_;  // the codes of each plane, packed, one plane after the other
};

}  // namespace caffe
