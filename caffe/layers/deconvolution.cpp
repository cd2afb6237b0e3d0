#include "caffe/layers/deconvolution.hpp"

#include "caffe/layers/channels.hpp"
#include "caffe/layers/convolution.hpp"

namespace caffe {

std::vector<Shape> DeconvolutionLayer::reshape(const std::vector<Shape>& bottoms) {
  check_one_shape(bottoms);
  const ConvolutionGeometry geometry = deconvolution_geometry(options_, bottoms[0]);
  fit_weights(geometry.weights, geometry.src[1], options_.bias, bottoms[0], parameters);
  maps_.set(geometry, false);
  return std::vector<Shape>(bottoms.size(), geometry.src);
}

Needs DeconvolutionLayer::needs(const Propagation& propagation) const {
  const size_t count = propagation.bottoms.size();
  return weights_needs(no_needs(count, count), propagation);
}

Traits DeconvolutionLayer::traits() const {
  Traits traits;
  traits.batch_axis = BatchAxis::Independent;
  traits.slices = true;
  return traits;
}

int64_t DeconvolutionLayer::gradient_terms() const {
  const Shape& bottom = maps_.geometry().dst;
  return bottom[0] * shape_count(bottom, 2, bottom.size());
}

int64_t DeconvolutionLayer::exact_slice() const {
  return maps_.part_of(maps_.geometry().src[0]);
}

void DeconvolutionLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  const int64_t batch = src[0].dim(0);
  const int64_t part = maps_.part_of(batch);
  const ScratchMemory weights = maps_.transposed_weights(parameters[0]->data, part);
  for (size_t i = 0; i < src.size(); ++i) {
    for (int64_t n = 0; n < batch; n += part) {
      ConvolutionMaps::Dst x(src[i].slice(n, n + part));
      maps_.apply_transposed(x, weights, dst[i].slice(n, n + part));
    }
    if (!options_.bias) continue;
    float* y = dst[i].data();
    const float* b = parameters[1]->data.data();
    for_each_value(ChannelShape::of(dst[i].shape(), 1, 1),
                   [=](int64_t c, int64_t at) { y[at] += b[c]; });
  }
}

void DeconvolutionLayer::backward(const BackwardArguments& arguments) {
  const std::vector<bool>& learns = arguments.propagation.parameters;
  const int64_t batch = arguments.diff_dst[0].dim(0);
  const int64_t part = maps_.part_of(batch);
  if (options_.bias && learns[1]) add_bias_gradient(arguments, bias_sums_, *parameters[1]);
  for (size_t i = 0; i < arguments.diff_dst.size(); ++i) {
    const Tensor& diff_dst = arguments.diff_dst[i];
    for (int64_t n = 0; n < batch && learns[0]; n += part) {
      ConvolutionMaps::Dst x(arguments.src[i].slice(n, n + part));
      maps_.add_weights_gradient(diff_dst.slice(n, n + part), x, *parameters[0]);
    }
    if (arguments.diff_src[i].defined()) {
      maps_.apply({diff_dst}, parameters[0]->data, Tensor(), {arguments.diff_src[i]});
    }
  }
}

}  // namespace caffe
