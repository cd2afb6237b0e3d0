#include "caffe/layers/convolution_maps.hpp"

#include <algorithm>
#include <utility>

namespace caffe {

namespace {

// Of the larger side of a part, in plain layout: what its copies take, each.
constexpr int64_t kPartBytes = int64_t{16} << 20;

Shape with_batch(Shape shape, int64_t batch) {
  shape[0] = batch;
  return shape;
}

bool same_sample(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

}  // namespace

void ConvolutionMaps::set(const ConvolutionGeometry& geometry, bool bias) {
  if (geometry_.src.empty() || !same_sample(geometry.src, geometry_.src)) primitives_.clear();
  geometry_ = geometry;
  bias_ = bias;
}

int64_t ConvolutionMaps::part_of(int64_t batch) const {
  const int64_t sample = std::max(shape_count(geometry_.src, 1, geometry_.src.size()),
                                  shape_count(geometry_.dst, 1, geometry_.dst.size()));
  const auto bytes = sample * static_cast<int64_t>(sizeof(float));
  int64_t part = std::max<int64_t>(1, batch);
  while (part > 1 && (part * bytes > kPartBytes || batch % part != 0)) --part;
  return part;
}

ConvolutionDescs ConvolutionMaps::any_descs(int64_t batch) const {
  return {any_desc(with_batch(geometry_.src, batch)),
          any_desc(geometry_.grouped_weights),
          {},
          any_desc(with_batch(geometry_.dst, batch))};
}

const ConvolutionMaps::Made<dnnl::convolution_forward>& ConvolutionMaps::forward(int64_t batch) {
  auto& made = primitives_[batch].forward;
  if (!made) {
    ConvolutionDescs descs = any_descs(batch);
    if (bias_) descs.bias = plain_desc({geometry_.dst[1]});
    const auto desc = make_convolution_forward(descs, geometry_.steps);
    made = {desc, dnnl::convolution_forward(desc)};
  }
  return *made;
}

const ConvolutionMaps::Made<dnnl::convolution_backward_weights>& ConvolutionMaps::backward_weights(
    int64_t batch) {
  auto& made = primitives_[batch].backward_weights;
  if (!made) {
    const auto desc =
        make_convolution_backward_weights(any_descs(batch), geometry_.steps, forward(batch).desc);
    made = {desc, dnnl::convolution_backward_weights(desc)};
  }
  return *made;
}

const ConvolutionMaps::Made<dnnl::convolution_backward_data>& ConvolutionMaps::backward_data(
    int64_t batch) {
  auto& made = primitives_[batch].backward_data;
  if (!made) {
    const auto desc =
        make_convolution_backward_data(any_descs(batch), geometry_.steps, forward(batch).desc);
    made = {desc, dnnl::convolution_backward_data(desc)};
  }
  return *made;
}

ScratchMemory ConvolutionMaps::plain_weights(const Tensor& weights) const {
  return plain_memory(weights.reshaped(geometry_.grouped_weights));
}

ScratchMemory ConvolutionMaps::transposed_weights(const Tensor& weights, int64_t batch) {
  return in_layout(plain_weights(weights), backward_data(batch).desc.weights_desc());
}

const dnnl::memory& ConvolutionMaps::Dst::in(const dnnl::memory::desc& layout) {
  if (copy.block && copy.memory.get_desc() == layout) return copy.memory;
  copy = {};  // before the next one is made
  copy = in_layout(plain, layout);
  return copy.memory;
}

void ConvolutionMaps::apply(const Tensors& src, const Tensor& weights, const Tensor& bias,
                            const Tensors& dst) {
  const int64_t batch = src[0].dim(0);
  const int64_t part = part_of(batch);
  const ScratchMemory w = in_layout(plain_weights(weights), forward(part).desc.weights_desc());
  for (size_t i = 0; i < src.size(); ++i) {
    for (int64_t n = 0; n < batch; n += part) {
      apply_part(src[i].slice(n, n + part), w, bias, dst[i].slice(n, n + part));
    }
  }
}

void ConvolutionMaps::apply_part(const Tensor& src, const ScratchMemory& weights,
                                 const Tensor& bias, const Tensor& dst) {
  const auto& [desc, primitive] = forward(src.dim(0));
  const ScratchMemory plain = plain_memory(dst);
  ScratchMemory x = in_layout(plain_memory(src), desc.src_desc());
  const ScratchMemory y = output_memory(plain, desc.dst_desc());
  std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SRC, x.memory}, {DNNL_ARG_WEIGHTS, weights.memory}, {DNNL_ARG_DST, y.memory}};
  if (bias_) arguments[DNNL_ARG_BIAS] = plain_memory(bias).memory;
  run(primitive, desc.scratchpad_desc(), std::move(arguments));
  x = {};
  if (y.block) reorder(y.memory, plain.memory);
}

void ConvolutionMaps::add_weights_gradient(const Tensor& src, Dst& dst, Parameter& weights) {
  const auto& [desc, primitive] = backward_weights(src.dim(0));
  const ScratchMemory sum = plain_weights(weights.gradient());
  const bool overwrite = weights.gradient_is_zero;
  const ScratchMemory dw = overwrite ? output_memory(sum, desc.diff_weights_desc())
                                     : ScratchMemory(desc.diff_weights_desc());
  {
    const ScratchMemory x = in_layout(plain_memory(src), desc.src_desc());
    run(primitive, desc.scratchpad_desc(),
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
  const auto& [desc, primitive] = backward_data(src.dim(0));
  const ScratchMemory plain = plain_memory(src);
  const ScratchMemory dx = output_memory(plain, desc.diff_src_desc());
  run(primitive, desc.scratchpad_desc(),
      {{DNNL_ARG_DIFF_DST, dst.in(desc.diff_dst_desc())},
       {DNNL_ARG_WEIGHTS, weights.memory},
       {DNNL_ARG_DIFF_SRC, dx.memory}});
  dst.copy = {};
  if (dx.block) reorder(dx.memory, plain.memory);
}

}  // namespace caffe
