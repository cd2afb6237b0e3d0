// The linear maps of a convolution with weights W, run by oneDNN. Its two sides are src and dst:
//   apply:                  dst = W src + b
//   apply_transposed:       src = W^T dst
//   add_weights_gradient:   dW += the gradient of <dst, W src>
// Convolution goes from src to dst, Deconvolution from dst to src.
#pragma once

#include <optional>

#include "caffe/core/layouts.hpp"
#include "caffe/layers/convolution_geometry.hpp"

namespace caffe {

class ConvolutionMaps {
 public:
  // Primitives are made when first run with this geometry. `bias`: whether apply() adds one.
  void set(const ConvolutionGeometry& geometry, bool bias);
  const ConvolutionGeometry& geometry() const { return geometry_; }

  // A tensor of the dst side, and the copy of it that was last needed, if any.
  struct Dst {
    explicit Dst(const Tensor& tensor) : plain(plain_memory(tensor)) {}
    const dnnl::memory& in(const dnnl::memory::desc& layout);
    ScratchMemory plain, copy;
  };

  // For each pair; `bias` is not read without one.
  void apply(const Tensors& src, const Tensor& weights, const Tensor& bias, const Tensors& dst);
  // Adds to the parameter's gradient.
  void add_weights_gradient(const Tensor& src, Dst& dst, Parameter& weights);
  // `weights` as transposed_weights() gives them. Lets go of the copy of dst.
  void apply_transposed(Dst& dst, const ScratchMemory& weights, const Tensor& src);
  ScratchMemory transposed_weights(const Tensor& weights);

 private:
  // In whatever layouts oneDNN likes best.
  ConvolutionDescs any_descs() const;
  ScratchMemory plain_weights(const Tensor& weights) const;
  void make_forward();
  void make_backward_weights();
  void make_backward_data();

  ConvolutionGeometry geometry_;
  bool bias_ = false;

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
