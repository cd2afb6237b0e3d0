#include "caffe/layers/convolution.hpp"

#include <algorithm>

#include "caffe/layers/channels.hpp"

namespace caffe {

void check_one_shape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, std::max<size_t>(bottoms.size(), 1));
  for (const Shape& other : bottoms) {
    require(other == bottoms[0], "all bottoms need one shape, but they are ",
            shape_string(bottoms[0]), " and ", shape_string(other));
  }
}

void fit_weights(const Shape& weights, int64_t outputs, bool bias, const Shape& bottom,
                 std::vector<std::shared_ptr<Parameter>>& parameters) {
  if (parameters.empty()) {
    parameters.push_back(std::make_shared<Parameter>(weights));
    if (bias) parameters.push_back(std::make_shared<Parameter>(Shape{outputs}));
  }
  const Shape& ours = parameters[0]->data.shape();
  require(ours == weights, "its weights are ", shape_string(ours), ", but bottom 0 (",
          shape_string(bottom), ") needs ", shape_string(weights));
}

void add_bias_gradient(const Layer::BackwardArguments& arguments, SlicedSums& sums,
                       Parameter& bias) {
  bool starts = arguments.slice.index == 0;
  for (const Tensor& diff_dst : arguments.diff_dst) {
    sums.add(diff_dst.data(), nullptr, ChannelShape::of(diff_dst.shape(), 1, 1), starts);
    starts = false;
  }
  if (arguments.slice.last) sums.add_a_to(bias);
}

Needs weights_needs(Needs needs, const Propagation& propagation) {
  if (propagation.parameters[0]) {
    for (Need& need : needs.bottoms) need = {Quality::Bounded, BoundRule::Gradient};
  }
  return needs;
}

std::vector<Shape> ConvolutionLayer::reshape(const std::vector<Shape>& bottoms) {
  check_one_shape(bottoms);
  const ConvolutionGeometry geometry = convolution_geometry(options_, bottoms[0]);
  fit_weights(geometry.weights, geometry.dst[1], options_.bias, bottoms[0], parameters);
  maps_.set(geometry, options_.bias);
  return std::vector<Shape>(bottoms.size(), geometry.dst);
}

Needs ConvolutionLayer::needs(const Propagation& propagation) const {
  const size_t count = propagation.bottoms.size();
  return weights_needs(no_needs(count, count), propagation);
}

Traits ConvolutionLayer::traits() const {
  Traits traits;
  traits.batch_axis = BatchAxis::Independent;
  traits.slices = true;
  return traits;
}

int64_t ConvolutionLayer::gradient_terms() const {
  const Shape& dst = maps_.geometry().dst;
  return dst[0] * shape_count(dst, 2, dst.size());
}

int64_t ConvolutionLayer::exact_slice() const {
  return maps_.part_of(maps_.geometry().src[0]);
}

void ConvolutionLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  maps_.apply(src, parameters[0]->data, options_.bias ? parameters[1]->data : Tensor(), dst);
}

void ConvolutionLayer::backward(const BackwardArguments& arguments) {
  const std::vector<bool>& learns = arguments.propagation.parameters;
  const int64_t batch = arguments.diff_dst[0].dim(0);
  const int64_t part = maps_.part_of(batch);
  if (options_.bias && learns[1]) add_bias_gradient(arguments, bias_sums_, *parameters[1]);
  ScratchMemory weights;
  for (size_t i = 0; i < arguments.diff_dst.size(); ++i) {
    for (int64_t n = 0; n < batch; n += part) {
      ConvolutionMaps::Dst diff_dst(arguments.diff_dst[i].slice(n, n + part));
      // The weights' gradient first: it needs src, whose copy is gone when the other starts.
      if (learns[0]) {
        maps_.add_weights_gradient(arguments.src[i].slice(n, n + part), diff_dst, *parameters[0]);
      }
      if (!arguments.diff_src[i].defined()) continue;
      if (!weights.memory) weights = maps_.transposed_weights(parameters[0]->data, part);
      maps_.apply_transposed(diff_dst, weights, arguments.diff_src[i].slice(n, n + part));
    }
  }
}

}  // namespace caffe
