#include "caffe/layers/convolution_maps.hpp"

#include <utility>

namespace caffe {

void ConvolutionMaps::set(const ConvolutionGeometry& geometry, bool bias) {
  if (geometry.src != geometry_.src) {
    forward_.reset();
    backward_weights_.reset();
    backward_data_.reset();
  }
  geometry_ = geometry;
  bias_ = bias;
}

ConvolutionDescs ConvolutionMaps::any_descs() const {
  return {
      any_desc(geometry_.src), any_desc(geometry_.grouped_weights), {}, any_desc(geometry_.dst)};
}

void ConvolutionMaps::make_forward() {
  if (forward_) return;
  ConvolutionDescs descs = any_descs();
  if (bias_) descs.bias = plain_desc({geometry_.dst[1]});
  const auto desc = make_convolution_forward(descs, geometry_.steps);
  forward_ = {desc, dnnl::convolution_forward(desc)};
}

void ConvolutionMaps::make_backward_weights() {
  if (backward_weights_) return;
  make_forward();
  const auto desc = make_convolution_backward_weights(any_descs(), geometry_.steps, forward_->desc);
  backward_weights_ = {desc, dnnl::convolution_backward_weights(desc)};
}

void ConvolutionMaps::make_backward_data() {
  if (backward_data_) return;
  make_forward();
  const auto desc = make_convolution_backward_data(any_descs(), geometry_.steps, forward_->desc);
  backward_data_ = {desc, dnnl::convolution_backward_data(desc)};
}

ScratchMemory ConvolutionMaps::plain_weights(const Tensor& weights) const {
  return plain_memory(weights.reshaped(geometry_.grouped_weights));
}

ScratchMemory ConvolutionMaps::transposed_weights(const Tensor& weights) {
  make_backward_data();
  return in_layout(plain_weights(weights), backward_data_->desc.weights_desc());
}

const dnnl::memory& ConvolutionMaps::Dst::in(const dnnl::memory::desc& layout) {
  if (copy.block && copy.memory.get_desc() == layout) return copy.memory;
  copy = {};  // before the next one is made
  copy = in_layout(plain, layout);
  return copy.memory;
}

void ConvolutionMaps::apply(const Tensors& src, const Tensor& weights, const Tensor& bias,
                            const Tensors& dst) {
  make_forward();
  const auto& desc = forward_->desc;
  const ScratchMemory w = in_layout(plain_weights(weights), desc.weights_desc());
  for (size_t i = 0; i < src.size(); ++i) {
    const ScratchMemory plain = plain_memory(dst[i]);
    ScratchMemory x = in_layout(plain_memory(src[i]), desc.src_desc());
    const ScratchMemory y = output_memory(plain, desc.dst_desc());
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC, x.memory}, {DNNL_ARG_WEIGHTS, w.memory}, {DNNL_ARG_DST, y.memory}};
    if (bias_) arguments[DNNL_ARG_BIAS] = plain_memory(bias).memory;
    run(forward_->primitive, desc.scratchpad_desc(), std::move(arguments));
    x = {};
    if (y.block) reorder(y.memory, plain.memory);
  }
}

void ConvolutionMaps::add_weights_gradient(const Tensor& src, Dst& dst, Parameter& weights) {
  make_backward_weights();
  const auto& desc = backward_weights_->desc;
  const ScratchMemory sum = plain_weights(weights.gradient());
  const bool overwrite = weights.gradient_is_zero;
  const ScratchMemory dw = overwrite ? output_memory(sum, desc.diff_weights_desc())
                                     : ScratchMemory(desc.diff_weights_desc());
  {
    const ScratchMemory x = in_layout(plain_memory(src), desc.src_desc());
    run(backward_weights_->primitive, desc.scratchpad_desc(),
        {{DNNL_ARG_SRC, x.memory},
         {DNNL_ARG_DIFF_DST, dst.in(desc.diff_dst_desc())},
         {DNNL_ARG_DIFF_WEIGHTS, dw.memory}});
  }
  if (!overwrite) {
    reorder_and_add(dw.memory, sum.memory);
  } else if (dw.block) {
    reorder(dw.memory, sum.memory);
  }
  weights.gradient_is_zero = false;
}

void ConvolutionMaps::apply_transposed(Dst& dst, const ScratchMemory& weights, const Tensor& src) {
  const auto& desc = backward_data_->desc;
  const ScratchMemory plain = plain_memory(src);
  const ScratchMemory dx = output_memory(plain, desc.diff_src_desc());
  run(backward_data_->primitive, desc.scratchpad_desc(),
      {{DNNL_ARG_DIFF_DST, dst.in(desc.diff_dst_desc())},
       {DNNL_ARG_WEIGHTS, weights.memory},
       {DNNL_ARG_DIFF_SRC, dx.memory}});
  dst.copy = {};
  if (dx.block) reorder(dx.memory, plain.memory);
}

}  // namespace caffe
