// Convolution over one to three spatial axes, in groups.
//   bottoms N x C x spatial... -> tops N x num_output x spatial'..., one top a bottom, same weights
//   spatial' = floor((spatial + 2 pad - dilation (kernel - 1) - 1) / stride) + 1
//   y[n,o,p] = b[o] + sum over c of o's group, taps t: W[o,c,t] x[n, c, p stride - pad + t dilation]
//   dW[o,c,t] = sum over n, p: dy[n,o,p] x[n, c, p stride - pad + t dilation]
//   db[o] = sum over n, p: dy[n,o,p]
//   dx = the transpose of the forward map applied to dy
// Parameters: W num_output x C/group x kernel..., b num_output.
// Backward reads: x, where the weights learn.
#pragma once

#include <optional>

#include "caffe/core/layouts.hpp"
#include "caffe/layers/convolution_geometry.hpp"
#include "caffe/layers/layer.hpp"

namespace caffe {

class ConvolutionLayer : public Layer {
 public:
  explicit ConvolutionLayer(const ConvolutionOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;
  int64_t gradient_terms() const override;

 private:
  // In whatever layouts oneDNN likes best.
  ConvolutionDescs any_descs() const;
  void make_forward();
  void make_backward_weights();
  void make_backward_data();

  // A gradient of the top, and the copy of it that was last needed, if any.
  struct DiffDst {
    ScratchMemory plain, copy;
    const dnnl::memory& in(const dnnl::memory::desc& layout);
  };
  ScratchMemory weights() const;
  void add_weights_gradient(const Tensor& src, DiffDst& diff_dst);
  void add_bias_gradient(const Tensor& diff_dst);
  void write_diff_src(DiffDst& diff_dst, const ScratchMemory& weights, const Tensor& diff_src);

  ConvolutionOptions options_;
  ConvolutionGeometry geometry_;

  // Made when first run with the shapes in geometry_.
  template <typename Primitive>
  struct Made {
    typename Primitive::primitive_desc desc;
    Primitive primitive;
  };
  std::optional<Made<dnnl::convolution_forward>> forward_;
  std::optional<Made<dnnl::convolution_backward_weights>> backward_weights_;
  std::optional<Made<dnnl::convolution_backward_data>> backward_data_;
};

}  // namespace caffe
