// The linear maps of a convolution with weights W, run by oneDNN. Its two sides are src and dst:
//   apply:                  dst = W src + b
//   apply_transposed:       src = W^T dst
//   add_weights_gradient:   dW += the gradient of <dst, W src>
// Convolution goes from src to dst, Deconvolution from dst to src.
//
// Large batches go in parts, so that copies in oneDNN's layouts stay small.
#pragma once

#include <map>
#include <optional>

#include "caffe/core/layouts.hpp"
#include "caffe/layers/convolution_geometry.hpp"

namespace caffe {

class ConvolutionMaps {
 public:
  // Primitives are made when first run. `bias`: whether apply() adds one.
  void set(const ConvolutionGeometry& geometry, bool bias);
  const ConvolutionGeometry& geometry() const { return geometry_; }
  // Samples of a part of a batch of that many; it divides the batch.
  int64_t part_of(int64_t batch) const;

  // A tensor of the dst side, and the copy of it that was last needed, if any.
  struct Dst {
    explicit Dst(const Tensor& tensor) : plain(plain_memory(tensor)) {}
    const dnnl::memory& in(const dnnl::memory::desc& layout);
    ScratchMemory plain, copy;
  };

  // For each pair; `bias` is not read without one.
  void apply(const Tensors& src, const Tensor& weights, const Tensor& bias, const Tensors& dst);
  // The other two take one part. Adds to the parameter's gradient.
  void add_weights_gradient(const Tensor& src, Dst& dst, Parameter& weights);
  // `weights` as transposed_weights() gives them. Lets go of the copy of dst.
  void apply_transposed(Dst& dst, const ScratchMemory& weights, const Tensor& src);
  // For parts of `batch` samples.
  ScratchMemory transposed_weights(const Tensor& weights, int64_t batch);

 private:
  template <typename Primitive>
  struct Made {
    typename Primitive::primitive_desc desc;
    Primitive primitive;
  };
  // Of one size of a part, made where first wanted.
  struct Primitives {
    std::optional<Made<dnnl::convolution_forward>> forward;
    std::optional<Made<dnnl::convolution_backward_weights>> backward_weights;
    std::optional<Made<dnnl::convolution_backward_data>> backward_data;
  };

  // In whatever layouts oneDNN likes best.
  ConvolutionDescs any_descs(int64_t batch) const;
  ScratchMemory plain_weights(const Tensor& weights) const;
  const Made<dnnl::convolution_forward>& forward(int64_t batch);
  const Made<dnnl::convolution_backward_weights>& backward_weights(int64_t batch);
  const Made<dnnl::convolution_backward_data>& backward_data(int64_t batch);
  void apply_part(const Tensor& src, const ScratchMemory& weights, const Tensor& bias,
                  const Tensor& dst);

  ConvolutionGeometry geometry_;
  bool bias_ = false;
  std::map<int64_t, Primitives> primitives_;  // by samples of a part
};

}  // namespace caffe
