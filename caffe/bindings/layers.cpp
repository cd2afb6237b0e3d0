// caffe._core.layers: the interface of all layers, and a matrix product for those in Python. The
// constructors, which python/caffe/layers/native.py calls, are in the other files layers_*.cpp.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "caffe/bindings/module.hpp"
#include "caffe/core/onednn.hpp"
#include "caffe/layers/layer.hpp"

namespace py = pybind11;
using namespace caffe;  // NOLINT: bindings name nearly everything of it
using namespace pybind11::literals;

namespace {

void bind_interface(py::module_& m) {
  py::enum_<Quality>(m, "Quality")
      .value("NOTHING", Quality::Nothing)
      .value("SIGN", Quality::Sign)
      .value("BOUNDED", Quality::Bounded)
      .value("BOUNDED_SIGN", Quality::BoundedSign)
      .value("EXACT", Quality::Exact);
  py::enum_<BoundRule>(m, "BoundRule")
      .value("GRADIENT", BoundRule::Gradient)
      .value("NORMALISED", BoundRule::Normalised)
      .value("PROPAGATED", BoundRule::Propagated);
  py::enum_<BatchAxis>(m, "BatchAxis")
      .value("COUPLED", BatchAxis::Coupled)
      .value("INDEPENDENT", BatchAxis::Independent);
  py::enum_<Inverse>(m, "Inverse")
      .value("NONE", Inverse::None)
      .value("VALUE", Inverse::Value)
      .value("SELECTED", Inverse::Selected);
  py::class_<Need>(m, "Need")
      .def(py::init([](Quality quality, BoundRule rule) {
             return Need{quality, rule};
           }),
           "quality"_a = Quality::Nothing, "rule"_a = BoundRule::Propagated)
      .def_readonly("quality", &Need::quality)
      .def_readonly("rule", &Need::rule);
  py::class_<Needs>(m, "Needs")
      .def(py::init([](std::vector<Need> bottoms, std::vector<Need> tops) {
             return Needs{std::move(bottoms), std::move(tops)};
           }),
           "bottoms"_a, "tops"_a)
      .def_readonly("bottoms", &Needs::bottoms)
      .def_readonly("tops", &Needs::tops);
  py::class_<Propagation>(m, "Propagation")
      .def(py::init([](std::vector<bool> bottoms, std::vector<bool> parameters) {
             return Propagation{std::move(bottoms), std::move(parameters)};
           }),
           "bottoms"_a, "parameters"_a)
      .def_readonly("bottoms", &Propagation::bottoms)
      .def_readonly("parameters", &Propagation::parameters);
  py::class_<Traits>(m, "Traits")
      .def(py::init<>())
      .def_readwrite("cheap", &Traits::cheap)
      .def_readwrite("keeps_sign", &Traits::keeps_sign)
      .def_readwrite("rectifies", &Traits::rectifies)
      .def_readwrite("inverse", &Traits::inverse)
      .def_readwrite("slices", &Traits::slices)
      .def_readwrite("any_slices", &Traits::any_slices)
      .def_readwrite("sums_first", &Traits::sums_first)
      .def_readwrite("forward_in_place", &Traits::forward_in_place)
      .def_readwrite("backward_in_place", &Traits::backward_in_place)
      .def_readwrite("alias", &Traits::alias)
      .def_readwrite("batch_axis", &Traits::batch_axis)
      .def_readwrite("differentiable_bottoms", &Traits::differentiable_bottoms)
      .def_readwrite("error_factor", &Traits::error_factor)
      .def_readwrite("inverse_error_factor", &Traits::inverse_error_factor);
  py::class_<BatchSlice>(m, "BatchSlice")
      .def(py::init([](size_t index, int64_t first, bool last) {
             return BatchSlice{index, first, last};
           }),
           "index"_a = 0, "first"_a = 0, "last"_a = true)
      .def_readonly("index", &BatchSlice::index)
      .def_readonly("first", &BatchSlice::first)
      .def_readonly("last", &BatchSlice::last);
  py::class_<ForwardContext>(m, "ForwardContext")
      .def(py::init([](bool train, bool save_for_backward, uint64_t random_key,
                       uint64_t forward_count, bool inverts, const BatchSlice& slice) {
             return ForwardContext{train,         save_for_backward, random_key,
                                   forward_count, inverts,           slice};
           }),
           "train"_a, "save_for_backward"_a = true, "random_key"_a = 0, "forward_count"_a = 0,
           "inverts"_a = false, "slice"_a = BatchSlice{})
      .def_readonly("train", &ForwardContext::train)
      .def_readonly("save_for_backward", &ForwardContext::save_for_backward)
      .def_readonly("random_key", &ForwardContext::random_key)
      .def_readonly("forward_count", &ForwardContext::forward_count)
      .def_readonly("inverts", &ForwardContext::inverts)
      .def_readonly("slice", &ForwardContext::slice);
  using Release = py::call_guard<py::gil_scoped_release>;
  py::class_<Layer, std::shared_ptr<Layer>>(m, "Layer")
      .def("reshape", &Layer::reshape)
      .def("needs", &Layer::needs)
      .def("traits", &Layer::traits)
      .def("forward", &Layer::forward, "src"_a, "dst"_a, "context"_a, Release())
      .def(
          "backward",
          [](Layer& layer, const Tensors& src, const Tensors& dst, const Tensors& diff_dst,
             const Tensors& diff_src, const Propagation& propagation, const BatchSlice& slice) {
            layer.backward({src, dst, diff_dst, diff_src, propagation, slice});
          },
          "src"_a, "dst"_a, "diff_dst"_a, "diff_src"_a, "propagation"_a, "slice"_a = BatchSlice{},
          Release())
      .def(
          "add_up",
          [](Layer& layer, const Tensors& src, const Tensors& dst, const Tensors& diff_dst,
             const Propagation& propagation, const BatchSlice& slice) {
            layer.add_up({src, dst, diff_dst, {}, propagation, slice});
          },
          "src"_a, "dst"_a, "diff_dst"_a, "propagation"_a, "slice"_a, Release())
      .def("rerun", &Layer::rerun, "src"_a, "dst"_a, "context"_a, Release())
      .def("invert", &Layer::invert, "dst"_a, "src"_a, "slice"_a = BatchSlice{}, Release())
      .def("gradient_terms", &Layer::gradient_terms)
      .def("exact_slice", &Layer::exact_slice)
      .def("saved_bytes", &Layer::saved_bytes)
      .def("drop_saved", &Layer::drop_saved)
      .def_readwrite("parameters", &Layer::parameters);
}

using Matrix = py::array_t<float>;

// Distance of two rows; ConfigError unless the array is a matrix with values side by side in a row.
int64_t row_stride(const char* name, const Matrix& matrix) {
  constexpr py::ssize_t kSize = sizeof(float);
  require(matrix.ndim() == 2, name, " has ", matrix.ndim(), " axes, needs 2");
  if (matrix.size() == 0) return 1;
  require(matrix.shape(1) <= 1 || matrix.strides(1) == kSize, name,
          " needs the values of a row side by side");
  const int64_t stride = matrix.strides(0) / kSize;
  require(matrix.shape(0) <= 1 || stride >= matrix.shape(1), name, " needs rows one after another");
  return std::max<int64_t>(stride, matrix.shape(1));
}

// out = op(a) op(b), or with `accumulate` out += op(a) op(b); op transposes where asked to.
void multiply(const Matrix& a, const Matrix& b, Matrix out, bool transpose_a, bool transpose_b,
              bool accumulate) {
  const int64_t lda = row_stride("a", a);
  const int64_t ldb = row_stride("b", b);
  const int64_t ldc = row_stride("out", out);
  const int64_t m = a.shape(transpose_a ? 1 : 0);
  const int64_t k = a.shape(transpose_a ? 0 : 1);
  const int64_t n = b.shape(transpose_b ? 0 : 1);
  require(b.shape(transpose_b ? 1 : 0) == k && out.shape(0) == m && out.shape(1) == n,
          "matrices of ", m, "x", k, " and ", b.shape(transpose_b ? 1 : 0), "x", n,
          " do not give one of ", out.shape(0), "x", out.shape(1));
  if (m == 0 || n == 0 || k == 0) {
    if (!accumulate) out[py::ellipsis()] = 0.0f;
    return;
  }
  const float* from_a = a.data();
  const float* from_b = b.data();
  float* to = out.mutable_data();
  const py::gil_scoped_release release;
  gemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1, from_a, lda, from_b, ldb,
       accumulate ? 1 : 0, to, ldc);
}

}  // namespace

void bind_layers(py::module_& m) {
  py::module_ layers = m.def_submodule("layers", "The layers whose arithmetic is C++.");
  bind_interface(layers);
  layers.def("multiply", &multiply, "a"_a.noconvert(), "b"_a.noconvert(), "out"_a.noconvert(),
             "transpose_a"_a = false, "transpose_b"_a = false, "accumulate"_a = false,
             "Writes the product of two float32 matrices, or adds it to `out`.");
  bind_elementwise_layers(layers);
  bind_conv_layers(layers);
  bind_norm_layers(layers);
}
