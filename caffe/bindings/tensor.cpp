// caffe._core.Tensor and Parameter, and their NumPy views.
#include "caffe/core/tensor.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cmath>
#include <cstring>

#include "caffe/bindings/module.hpp"
#include "caffe/core/error.hpp"
#include "caffe/core/parallel.hpp"

namespace py = pybind11;
using namespace caffe;  // NOLINT: bindings name nearly everything of it

namespace {

// The tensor's buffer; ConfigError where it has none.
Block& block_of(const Tensor& tensor) {
  require(tensor.defined(), "this tensor holds nothing");
  return *tensor.block();
}

// The tensor's values; ConfigError where it has none, or only their signs.
const float* values_of(const Tensor& tensor) {
  block_of(tensor);
  require(!tensor.is_mask(), "a packed mask has no values");
  return tensor.data();
}

// A writable view that keeps the buffer alive, and marks it as held by Python while it exists.
py::array_t<float> view_of(const Tensor& tensor) {
  values_of(tensor);
  tensor.block()->pin();
  auto* holder = new std::shared_ptr<Block>(tensor.block());
  py::capsule owner(holder, [](void* pointer) {
    auto* block = static_cast<std::shared_ptr<Block>*>(pointer);
    (*block)->unpin();
    delete block;
  });
  return py::array_t<float>(tensor.shape(), tensor.data(), owner);
}

void zero(const Tensor& tensor) {
  block_of(tensor);
  void* values = tensor.is_mask() ? static_cast<void*>(tensor.mask_words()) : tensor.data();
  std::memset(values, 0, tensor.bytes());
}

void copy_values(const Tensor& from, const Tensor& to) {
  require(from.count() == to.count() && from.dtype() == to.dtype(), "cannot copy ",
          shape_string(from.shape()), " to ", shape_string(to.shape()));
  block_of(from);
  block_of(to);
  if (from.is_mask()) {
    std::memcpy(to.mask_words(), from.mask_words(), from.bytes());
  } else {
    std::memcpy(to.data(), from.data(), from.bytes());
  }
}

void add_values(const Tensor& other, const Tensor& to) {
  require(other.count() == to.count(), "cannot add ", shape_string(other.shape()), " to ",
          shape_string(to.shape()));
  const float* x = values_of(other);
  values_of(to);  // throws where it has none
  float* y = to.data();
  parallel_for(to.count(), kParallelGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] += x[i];
  });
}

// Root of the mean of squares, summed in double.
double rms(const Tensor& tensor) {
  const float* x = values_of(tensor);
  if (tensor.count() == 0) return 0;
  const double sum = parallel_sum<double>(tensor.count(), [=](int64_t begin, int64_t end) {
    double part = 0;
#pragma omp simd reduction(+ : part)
    for (int64_t i = begin; i < end; ++i) part += static_cast<double>(x[i]) * x[i];
    return part;
  });
  return std::sqrt(sum / static_cast<double>(tensor.count()));
}

double mean_abs(const Tensor& tensor) {
  const float* x = values_of(tensor);
  if (tensor.count() == 0) return 0;
  const double sum = parallel_sum<double>(tensor.count(), [=](int64_t begin, int64_t end) {
    double part = 0;
#pragma omp simd reduction(+ : part)
    for (int64_t i = begin; i < end; ++i) part += std::abs(static_cast<double>(x[i]));
    return part;
  });
  return sum / static_cast<double>(tensor.count());
}

}  // namespace

void bind_tensor(py::module_& m) {
  using Release = py::call_guard<py::gil_scoped_release>;
  py::class_<Tensor>(m, "Tensor")
      .def(py::init<>())
      .def(py::init([](Shape shape, MemoryKind kind, bool mask) {
             return Tensor::make(std::move(shape), kind, mask ? DType::Mask : DType::Float32);
           }),
           py::arg("shape"), py::arg("kind"), py::arg("mask") = false)
      .def_property_readonly("defined", &Tensor::defined)
      .def_property_readonly("shape",
                             [](const Tensor& t) { return py::tuple(py::cast(t.shape())); })
      .def_property_readonly("count", [](const Tensor& t) { return t.count(); })
      .def_property_readonly("bytes", &Tensor::bytes)
      .def_property_readonly("is_mask", &Tensor::is_mask)
      .def_property_readonly("kind", [](const Tensor& t) { return block_of(t).kind(); })
      .def_property_readonly("pinned", [](const Tensor& t) { return block_of(t).pinned(); })
      .def("set_kind", [](const Tensor& t, MemoryKind kind) { block_of(t).set_kind(kind); })
      .def("reshaped", &Tensor::reshaped)
      .def("slice", &Tensor::slice, py::arg("begin"), py::arg("end"))
      .def("shares_buffer", &Tensor::shares_buffer)
      .def("numpy", &view_of, "A float32 view, shape as the tensor's.")
      .def("zero", &zero, Release())
      .def(
          "copy_from", [](const Tensor& to, const Tensor& from) { copy_values(from, to); },
          Release())
      .def(
          "add", [](const Tensor& to, const Tensor& other) { add_values(other, to); }, Release())
      .def("rms", &rms, Release())
      .def("mean_abs", &mean_abs, Release());

  py::class_<Parameter, std::shared_ptr<Parameter>>(m, "Parameter")
      .def(py::init<Shape>())
      .def_readonly("data", &Parameter::data)
      .def_property_readonly("gradient", &Parameter::settled_gradient)
      .def_property_readonly("has_gradient", &Parameter::has_gradient)
      .def_readwrite("gradient_is_zero", &Parameter::gradient_is_zero)
      .def("clear_gradient", &Parameter::clear_gradient);
}
