// Constructors of the layers with weights or windows: Convolution, Deconvolution, InnerProduct,
// Pooling, LRN.
#include <pybind11/stl.h>

#include "caffe/bindings/module.hpp"
#include "caffe/layers/convolution.hpp"
#include "caffe/layers/deconvolution.hpp"
#include "caffe/layers/inner_product.hpp"
#include "caffe/layers/lrn.hpp"
#include "caffe/layers/pooling.hpp"

namespace py = pybind11;
using namespace caffe;  // NOLINT: bindings name nearly everything of it
using namespace pybind11::literals;

namespace {

template <typename Type>
using Bind = py::class_<Type, Layer, std::shared_ptr<Type>>;

// Convolution and its transpose take the same options.
template <typename Type>
void bind_convolution(py::module_& m, const char* name) {
  Bind<Type>(m, name).def(
      py::init([](int64_t num_output, const Shape& kernel, bool bias, const Shape& pad,
                  const Shape& stride, const Shape& dilation, int64_t group, int64_t axis) {
        ConvolutionOptions options;
        options.num_output = num_output;
        options.kernel = kernel;
        options.bias = bias;
        options.pad = pad;
        options.stride = stride;
        options.dilation = dilation;
        options.group = group;
        options.axis = axis;
        return std::make_shared<Type>(options);
      }),
      "num_output"_a, "kernel"_a, "bias"_a = true, "pad"_a = Shape{}, "stride"_a = Shape{},
      "dilation"_a = Shape{}, "group"_a = 1, "axis"_a = 1);
}

void bind_inner_product(py::module_& m) {
  Bind<InnerProductLayer>(m, "InnerProduct")
      .def(py::init([](int64_t num_output, bool bias, int64_t axis, bool transpose) {
             return std::make_shared<InnerProductLayer>(
                 InnerProductOptions{num_output, bias, axis, transpose});
           }),
           "num_output"_a, "bias"_a = true, "axis"_a = 1, "transpose"_a = false);
}

void bind_pooling(py::module_& m) {
  py::enum_<PoolMethod>(m, "PoolMethod")
      .value("MAX", PoolMethod::Max)
      .value("AVE", PoolMethod::Average)
      .value("STOCHASTIC", PoolMethod::Stochastic);
  py::enum_<RoundMode>(m, "RoundMode")
      .value("CEIL", RoundMode::Ceil)
      .value("FLOOR", RoundMode::Floor);
  using Pair = std::array<int64_t, 2>;
  Bind<PoolingLayer>(m, "Pooling")
      .def(py::init([](PoolMethod method, Pair kernel, Pair stride, Pair pad, bool global_pooling,
                       RoundMode round_mode, bool mask_top) {
             PoolingOptions options;
             options.method = method;
             options.global = global_pooling;
             options.kernel_h = kernel[0];
             options.kernel_w = kernel[1];
             options.stride_h = stride[0];
             options.stride_w = stride[1];
             options.pad_h = pad[0];
             options.pad_w = pad[1];
             options.round = round_mode;
             options.mask_top = mask_top;
             return std::make_shared<PoolingLayer>(options);
           }),
           "method"_a, "kernel"_a = Pair{0, 0}, "stride"_a = Pair{1, 1}, "pad"_a = Pair{0, 0},
           "global_pooling"_a = false, "round_mode"_a = RoundMode::Ceil, "mask_top"_a = false);
}

void bind_lrn(py::module_& m) {
  py::enum_<NormRegion>(m, "NormRegion")
      .value("ACROSS_CHANNELS", NormRegion::AcrossChannels)
      .value("WITHIN_CHANNEL", NormRegion::WithinChannel);
  Bind<LRNLayer>(m, "LRN").def(
      py::init([](int64_t local_size, float alpha, float beta, NormRegion region, float k) {
        return std::make_shared<LRNLayer>(LRNOptions{local_size, alpha, beta, region, k});
      }),
      "local_size"_a = 5, "alpha"_a = 1.0f, "beta"_a = 0.75f,
      "region"_a = NormRegion::AcrossChannels, "k"_a = 1.0f);
}

}  // namespace

void bind_conv_layers(py::module_& layers) {
  bind_convolution<ConvolutionLayer>(layers, "Convolution");
  bind_convolution<DeconvolutionLayer>(layers, "Deconvolution");
  bind_inner_product(layers);
  bind_pooling(layers);
  bind_lrn(layers);
}
