// Makes oneDNN primitive descriptors under its 2.x and its 3.x API: the only file that asks which.
//
// All are made with a scratchpad of the caller's, for run() of onednn.hpp.
#pragma once

#include "caffe/core/onednn.hpp"

namespace caffe {

// Memory descriptions of a convolution; `bias` stays empty where there is none. Weights of grouped
// ones have the group as an axis in front.
struct ConvolutionDescs {
  dnnl::memory::desc src, weights, bias, dst;
};

// One value for each spatial axis. A dilation of 1 is a dense kernel. `pad` is on both sides.
struct ConvolutionSteps {
  Shape stride, dilation, pad;

  // oneDNN counts the holes between taps instead.
  Shape holes() const {
    Shape holes = dilation;
    for (int64_t& value : holes) value -= 1;
    return holes;
  }
};

inline dnnl::convolution_forward::primitive_desc make_convolution_forward(
    const ConvolutionDescs& d, const ConvolutionSteps& s) {
  using Primitive = dnnl::convolution_forward;
  constexpr auto kind = dnnl::prop_kind::forward_training;
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return Primitive::primitive_desc(onednn_engine(), kind, algorithm, d.src, d.weights, d.bias,
                                   d.dst, s.stride, s.holes(), s.pad, s.pad, user_scratchpad());
#else
  const Primitive::desc desc(kind, algorithm, d.src, d.weights, d.bias, d.dst, s.stride, s.holes(),
                             s.pad, s.pad);
  return Primitive::primitive_desc(desc, user_scratchpad(), onednn_engine());
#endif
}

inline dnnl::convolution_backward_data::primitive_desc make_convolution_backward_data(
    const ConvolutionDescs& d, const ConvolutionSteps& s,
    const dnnl::convolution_forward::primitive_desc& forward) {
  using Primitive = dnnl::convolution_backward_data;
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return Primitive::primitive_desc(onednn_engine(), algorithm, d.src, d.weights, d.dst, s.stride,
                                   s.holes(), s.pad, s.pad, forward, user_scratchpad());
#else
  const Primitive::desc desc(algorithm, d.src, d.weights, d.dst, s.stride, s.holes(), s.pad, s.pad);
  return Primitive::primitive_desc(desc, user_scratchpad(), onednn_engine(), forward);
#endif
}

// Of the weights alone: d.bias is not read.
inline dnnl::convolution_backward_weights::primitive_desc make_convolution_backward_weights(
    const ConvolutionDescs& d, const ConvolutionSteps& s,
    const dnnl::convolution_forward::primitive_desc& forward) {
  using Primitive = dnnl::convolution_backward_weights;
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return Primitive::primitive_desc(onednn_engine(), algorithm, d.src, d.weights, d.dst, s.stride,
                                   s.holes(), s.pad, s.pad, forward, user_scratchpad());
#else
  const Primitive::desc desc(algorithm, d.src, d.weights, d.dst, s.stride, s.holes(), s.pad, s.pad);
  return Primitive::primitive_desc(desc, user_scratchpad(), onednn_engine(), forward);
#endif
}

}  // namespace caffe
