// Deconvolution: the transpose of a convolution, over one to three spatial axes, in groups.
//   bottoms N x C x spatial... -> tops N x num_output x spatial'..., one top a bottom, same weights
//   spatial' = stride (spatial - 1) + dilation (kernel - 1) + 1 - 2 pad
//   y[n,o,q] = b[o] + sum over c of o's group, p, taps t with q = p stride - pad + t dilation:
//              W[c,o,t] x[n,c,p]
//   dW[c,o,t] = sum over n, p: x[n,c,p] dy[n, o, p stride - pad + t dilation]
//   db[o] = sum over n, q: dy[n,o,q]
//   dx[n,c,p] = sum over o of c's group, taps t: W[c,o,t] dy[n, o, p stride - pad + t dilation]
// Parameters: W C x num_output/group x kernel..., b num_output.
// Backward reads: x, where the weights learn.
#pragma once

#include "caffe/layers/channels.hpp"
#include "caffe/layers/convolution_maps.hpp"
#include "caffe/layers/layer.hpp"

namespace caffe {

class DeconvolutionLayer : public Layer {
 public:
  explicit DeconvolutionLayer(const ConvolutionOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;
  int64_t gradient_terms() const override;
  int64_t exact_slice() const override;

 private:
  ConvolutionOptions options_;
  SlicedSums bias_sums_;
  ConvolutionMaps maps_;  // of the convolution from tops to bottoms
};

}  // namespace caffe
