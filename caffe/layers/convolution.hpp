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

#include "caffe/layers/channels.hpp"
#include "caffe/layers/convolution_maps.hpp"
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
  int64_t exact_slice() const override;

 private:
  ConvolutionOptions options_;
  SlicedSums bias_sums_;
  ConvolutionMaps maps_;
};

// What Convolution and Deconvolution have in common.

// ConfigError unless there is a bottom, and all have one shape.
void check_one_shape(const std::vector<Shape>& bottoms);
// Makes weights, and a bias of `outputs`, on the first call; ConfigError where those there are do
// not fit. `bottom` is for the message.
void fit_weights(const Shape& weights, int64_t outputs, bool bias, const Shape& bottom,
                 std::vector<std::shared_ptr<Parameter>>& parameters);
// db += the sums of all diff_dst over all but axis 1, of all slices once the last one comes.
void add_bias_gradient(const Layer::BackwardArguments& arguments, SlicedSums& sums,
                       Parameter& bias);
// Every bottom within a bound by the formula, where the weights learn.
Needs weights_needs(Needs nothing, const Propagation& propagation);

}  // namespace caffe
