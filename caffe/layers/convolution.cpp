#include "caffe/layers/convolution.hpp"

#include <algorithm>
#include <utility>

#include "caffe/layers/channels.hpp"

namespace caffe {
std::vector<Shape> ConvolutionLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, std::max<size_t>(bottoms.size(), 1));
  for (const Shape& other : bottoms) {
    require(other == bottoms[0], "all bottoms need one shape, but they are ",
            shape_string(bottoms[0]), " and ", shape_string(other));
  }
  const ConvolutionGeometry geometry = convolution_geometry(options_, bottoms[0]);
  if (parameters.empty()) {
    parameters.push_back(std::make_shared<Parameter>(geometry.weights));
    if (options_.bias) parameters.push_back(std::make_shared<Parameter>(Shape{geometry.dst[1]}));
  }
  const Shape& weights = parameters[0]->data.shape();
  require(weights == geometry.weights, "its weights are ", shape_string(weights),
          ", but bottom 0 (", shape_string(bottoms[0]), ") needs ", shape_string(geometry.weights));
  if (geometry.src != geometry_.src) {
    forward_.reset();
    backward_weights_.reset();
    backward_data_.reset();
  }
  geometry_ = geometry;
  return std::vector<Shape>(bottoms.size(), geometry.dst);
}

Needs ConvolutionLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(propagation.bottoms.size(), propagation.bottoms.size());
  if (propagation.parameters[0]) {
    for (Need& need : needs.bottoms) need = {Quality::Bounded, BoundRule::Gradient};
  }
  return needs;
}

Traits ConvolutionLayer::traits() const {
  Traits traits;
  traits.batch_axis = BatchAxis::Independent;
  return traits;
}

int64_t ConvolutionLayer::gradient_terms() const {
  return geometry_.dst[0] * shape_count(geometry_.dst, 2, geometry_.dst.size());
}

ConvolutionDescs ConvolutionLayer::any_descs() const {
  return {
      any_desc(geometry_.src), any_desc(geometry_.grouped_weights), {}, any_desc(geometry_.dst)};
}

void ConvolutionLayer::make_forward() {
  if (forward_) return;
  ConvolutionDescs descs = any_descs();
  if (options_.bias) descs.bias = plain_desc({options_.num_output});
  const auto desc = make_convolution_forward(descs, geometry_.steps);
  forward_ = {desc, dnnl::convolution_forward(desc)};
}

void ConvolutionLayer::make_backward_weights() {
  if (backward_weights_) return;
  make_forward();
  const auto desc = make_convolution_backward_weights(any_descs(), geometry_.steps, forward_->desc);
  backward_weights_ = {desc, dnnl::convolution_backward_weights(desc)};
}

void ConvolutionLayer::make_backward_data() {
  if (backward_data_) return;
  make_forward();
  const auto desc = make_convolution_backward_data(any_descs(), geometry_.steps, forward_->desc);
  backward_data_ = {desc, dnnl::convolution_backward_data(desc)};
}

ScratchMemory ConvolutionLayer::weights() const {
  return plain_memory(parameters[0]->data.reshaped(geometry_.grouped_weights));
}

const dnnl::memory& ConvolutionLayer::DiffDst::in(const dnnl::memory::desc& layout) {
  if (copy.block && copy.memory.get_desc() == layout) return copy.memory;
  copy = {};  // before the next one is made
  copy = in_layout(plain, layout);
  return copy.memory;
}

void ConvolutionLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  make_forward();
  const auto& desc = forward_->desc;
  const ScratchMemory w = in_layout(weights(), desc.weights_desc());
  for (size_t i = 0; i < src.size(); ++i) {
    const ScratchMemory plain = plain_memory(dst[i]);
    ScratchMemory x = in_layout(plain_memory(src[i]), desc.src_desc());
    const ScratchMemory y = output_memory(plain, desc.dst_desc());
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC, x.memory}, {DNNL_ARG_WEIGHTS, w.memory}, {DNNL_ARG_DST, y.memory}};
    if (options_.bias) arguments[DNNL_ARG_BIAS] = plain_memory(parameters[1]->data).memory;
    run(forward_->primitive, desc.scratchpad_desc(), std::move(arguments));
    x = {};
    if (y.block) reorder(y.memory, plain.memory);
  }
}

void ConvolutionLayer::backward(const BackwardArguments& arguments) {
  const std::vector<bool>& learns = arguments.propagation.parameters;
  ScratchMemory w;
  for (size_t i = 0; i < arguments.diff_dst.size(); ++i) {
    if (options_.bias && learns[1]) add_bias_gradient(arguments.diff_dst[i]);
    DiffDst diff_dst = {plain_memory(arguments.diff_dst[i]), {}};
    // The weights' gradient first: it is what needs src, whose copy is gone when the other starts.
    if (learns[0]) add_weights_gradient(arguments.src[i], diff_dst);
    if (!arguments.diff_src[i].defined()) continue;
    make_backward_data();
    if (!w.memory) w = in_layout(weights(), backward_data_->desc.weights_desc());
    write_diff_src(diff_dst, w, arguments.diff_src[i]);
  }
}

void ConvolutionLayer::add_weights_gradient(const Tensor& src, DiffDst& diff_dst) {
  make_backward_weights();
  const auto& desc = backward_weights_->desc;
  Parameter& parameter = *parameters[0];
  const ScratchMemory sum = plain_memory(parameter.gradient().reshaped(geometry_.grouped_weights));
  const bool overwrite = parameter.gradient_is_zero;
  const ScratchMemory dw = overwrite ? output_memory(sum, desc.diff_weights_desc())
                                     : ScratchMemory(desc.diff_weights_desc());
  {
    const ScratchMemory x = in_layout(plain_memory(src), desc.src_desc());
    run(backward_weights_->primitive, desc.scratchpad_desc(),
        {{DNNL_ARG_SRC, x.memory},
         {DNNL_ARG_DIFF_DST, diff_dst.in(desc.diff_dst_desc())},
         {DNNL_ARG_DIFF_WEIGHTS, dw.memory}});
  }
  if (!overwrite) {
    reorder_and_add(dw.memory, sum.memory);
  } else if (dw.block) {
    reorder(dw.memory, sum.memory);
  }
  parameter.gradient_is_zero = false;
}

void ConvolutionLayer::add_bias_gradient(const Tensor& diff_dst) {
  Parameter& parameter = *parameters[1];
  const Tensor& sum = parameter.gradient();
  channel_sums(diff_dst.data(), ChannelShape::of(diff_dst.shape(), 1, 1),
               !parameter.gradient_is_zero, sum.data());
  parameter.gradient_is_zero = false;
}

void ConvolutionLayer::write_diff_src(DiffDst& diff_dst, const ScratchMemory& weights,
                                      const Tensor& diff_src) {
  const auto& desc = backward_data_->desc;
  const ScratchMemory plain = plain_memory(diff_src);
  const ScratchMemory dx = output_memory(plain, desc.diff_src_desc());
  run(backward_data_->primitive, desc.scratchpad_desc(),
      {{DNNL_ARG_DIFF_DST, diff_dst.in(desc.diff_dst_desc())},
       {DNNL_ARG_WEIGHTS, weights.memory},
       {DNNL_ARG_DIFF_SRC, dx.memory}});
  diff_dst.copy = {};
  if (dx.block) reorder(dx.memory, plain.memory);
}

}  // namespace caffe
