// caffe._core.layers: constructors of the layers that are a function of each value.
#include <pybind11/stl.h>

#include "caffe/bindings/module.hpp"
#include "caffe/layers/clip.hpp"
#include "caffe/layers/elementwise_functions.hpp"
#include "caffe/layers/prelu.hpp"
#include "caffe/layers/relu.hpp"

namespace py = pybind11;
using namespace caffe;  // NOLINT: bindings name nearly everything of it
using namespace pybind11::literals;

namespace {

template <typename Type>
using Bind = py::class_<Type, Layer, std::shared_ptr<Type>>;

// A class of that name with a constructor from the function's own arguments, named in `names`.
template <typename Function, typename... Arguments, typename... Names>
void bind_function(py::module_& m, const char* name, const Names&... names) {
  using Type = ElementwiseLayer<Function>;
  Bind<Type>(m, name).def(py::init([](Arguments... arguments) {
                            return std::make_shared<Type>(Function{arguments...});
                          }),
                          names...);
}

void bind_functions(py::module_& m) {
  bind_function<AbsVal>(m, "AbsVal");
  bind_function<BNLL>(m, "BNLL");
  bind_function<ELU, float>(m, "ELU", "alpha"_a = 1.0f);
  bind_function<Exp, float, float, float>(m, "Exp", "base"_a = -1.0f, "scale"_a = 1.0f,
                                          "shift"_a = 0.0f);
  bind_function<Log, float, float, float>(m, "Log", "base"_a = -1.0f, "scale"_a = 1.0f,
                                          "shift"_a = 0.0f);
  bind_function<Power, float, float, float>(m, "Power", "power"_a = 1.0f, "scale"_a = 1.0f,
                                            "shift"_a = 0.0f);
  bind_function<Sigmoid>(m, "Sigmoid");
  bind_function<Swish, float>(m, "Swish", "beta"_a = 1.0f);
  bind_function<TanH>(m, "TanH");
  bind_function<Threshold, float>(m, "Threshold", "threshold"_a = 0.0f);
}

}  // namespace

void bind_elementwise_layers(py::module_& layers) {
  bind_functions(layers);
  Bind<ReLULayer>(layers, "ReLU")
      .def(py::init([](float negative_slope) {
             return std::make_shared<ReLULayer>(ReLUOptions{negative_slope});
           }),
           "negative_slope"_a = 0.0f);
  Bind<ClipLayer>(layers, "Clip")
      .def(py::init([](float min, float max) {
             return std::make_shared<ClipLayer>(ClipOptions{min, max});
           }),
           "min"_a, "max"_a);
  Bind<PReLULayer>(layers, "PReLU")
      .def(py::init([](bool channel_shared) {
             return std::make_shared<PReLULayer>(PReLUOptions{channel_shared});
           }),
           "channel_shared"_a = false);
}
