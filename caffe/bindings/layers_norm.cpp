// caffe._core.layers: constructors of the normalising, joining and shape-changing layers.
#include <pybind11/stl.h>

#include <optional>

#include "caffe/bindings/module.hpp"
#include "caffe/layers/batch_norm.hpp"
#include "caffe/layers/bias.hpp"
#include "caffe/layers/concat.hpp"
#include "caffe/layers/dropout.hpp"
#include "caffe/layers/eltwise.hpp"
#include "caffe/layers/flatten.hpp"
#include "caffe/layers/mvn.hpp"
#include "caffe/layers/reduction.hpp"
#include "caffe/layers/reshape.hpp"
#include "caffe/layers/scale.hpp"
#include "caffe/layers/slice.hpp"
#include "caffe/layers/softmax.hpp"
#include "caffe/layers/softmax_loss.hpp"
#include "caffe/layers/split.hpp"

namespace py = pybind11;
using namespace caffe;  // NOLINT: bindings name nearly everything of it
using namespace pybind11::literals;

namespace {

template <typename Type>
using Bind = py::class_<Type, Layer, std::shared_ptr<Type>>;

void bind_normalising(py::module_& m) {
  Bind<BatchNormLayer>(m, "BatchNorm")
      .def(py::init([](bool use_global_stats, float moving_average_fraction, float eps) {
             return std::make_shared<BatchNormLayer>(
                 BatchNormOptions{use_global_stats, moving_average_fraction, eps});
           }),
           "use_global_stats"_a = false, "moving_average_fraction"_a = 0.999f, "eps"_a = 1e-5f);
  Bind<ScaleLayer>(m, "Scale")
      .def(py::init([](int64_t axis, int64_t num_axes, bool bias_term) {
             return std::make_shared<ScaleLayer>(ScaleOptions{axis, num_axes, bias_term});
           }),
           "axis"_a = 1, "num_axes"_a = 1, "bias_term"_a = false);
  Bind<BiasLayer>(m, "Bias").def(py::init([](int64_t axis, int64_t num_axes) {
                                   return std::make_shared<BiasLayer>(BiasOptions{axis, num_axes});
                                 }),
                                 "axis"_a = 1, "num_axes"_a = 1);
  Bind<MVNLayer>(m, "MVN").def(
      py::init([](bool normalize_variance, bool across_channels, float eps) {
        return std::make_shared<MVNLayer>(MVNOptions{normalize_variance, across_channels, eps});
      }),
      "normalize_variance"_a = true, "across_channels"_a = false, "eps"_a = 1e-9f);
  Bind<DropoutLayer>(m, "Dropout")
      .def(py::init(
               [](float ratio) { return std::make_shared<DropoutLayer>(DropoutOptions{ratio}); }),
           "ratio"_a = 0.5f);
}

void bind_softmax(py::module_& m) {
  py::enum_<LossNormalization>(m, "LossNormalization")
      .value("FULL", LossNormalization::Full)
      .value("VALID", LossNormalization::Valid)
      .value("BATCH_SIZE", LossNormalization::BatchSize)
      .value("NONE", LossNormalization::None);
  Bind<SoftmaxLayer>(m, "Softmax")
      .def(py::init(
               [](int64_t axis) { return std::make_shared<SoftmaxLayer>(SoftmaxOptions{axis}); }),
           "axis"_a = 1);
  Bind<SoftmaxLossLayer>(m, "SoftmaxWithLoss")
      .def(py::init([](int64_t axis, std::optional<int32_t> ignore_label,
                       LossNormalization normalization, size_t tops) {
             SoftmaxLossOptions options;
             options.axis = axis;
             options.has_ignore_label = ignore_label.has_value();
             options.ignore_label = ignore_label.value_or(0);
             options.normalization = normalization;
             options.tops = tops;
             return std::make_shared<SoftmaxLossLayer>(options);
           }),
           "axis"_a = 1, "ignore_label"_a = std::nullopt,
           "normalization"_a = LossNormalization::Valid, "tops"_a = 1);
}

void bind_joining(py::module_& m) {
  py::enum_<EltwiseOperation>(m, "EltwiseOperation")
      .value("PROD", EltwiseOperation::Product)
      .value("SUM", EltwiseOperation::Sum)
      .value("MAX", EltwiseOperation::Maximum);
  Bind<EltwiseLayer>(m, "Eltwise")
      .def(py::init([](EltwiseOperation operation, std::vector<float> coeff) {
             return std::make_shared<EltwiseLayer>(EltwiseOptions{operation, std::move(coeff)});
           }),
           "operation"_a = EltwiseOperation::Sum, "coeff"_a = std::vector<float>{});
  Bind<ConcatLayer>(m, "Concat")
      .def(
          py::init([](int64_t axis) { return std::make_shared<ConcatLayer>(ConcatOptions{axis}); }),
          "axis"_a = 1);
  Bind<SliceLayer>(m, "Slice")
      .def(py::init([](int64_t axis, Shape points, size_t tops) {
             return std::make_shared<SliceLayer>(SliceOptions{axis, std::move(points), tops});
           }),
           "axis"_a = 1, "points"_a = Shape{}, "tops"_a = 1);
  Bind<SplitLayer>(m, "Split")
      .def(py::init([](size_t tops) { return std::make_shared<SplitLayer>(SplitOptions{tops}); }),
           "tops"_a = 2);
}

void bind_reduction(py::module_& m) {
  py::enum_<ReductionOperation>(m, "ReductionOperation")
      .value("SUM", ReductionOperation::Sum)
      .value("ASUM", ReductionOperation::AbsoluteSum)
      .value("SUMSQ", ReductionOperation::SumOfSquares)
      .value("MEAN", ReductionOperation::Mean);
  Bind<ReductionLayer>(m, "Reduction")
      .def(py::init([](ReductionOperation operation, int64_t axis, float coeff) {
             return std::make_shared<ReductionLayer>(ReductionOptions{operation, axis, coeff});
           }),
           "operation"_a = ReductionOperation::Sum, "axis"_a = 0, "coeff"_a = 1.0f);
}

void bind_shapes(py::module_& m) {
  Bind<FlattenLayer>(m, "Flatten")
      .def(py::init([](int64_t axis, int64_t end_axis) {
             return std::make_shared<FlattenLayer>(FlattenOptions{axis, end_axis});
           }),
           "axis"_a = 1, "end_axis"_a = -1);
  Bind<ReshapeLayer>(m, "Reshape")
      .def(py::init([](Shape dims, int64_t axis, int64_t num_axes) {
             return std::make_shared<ReshapeLayer>(ReshapeOptions{std::move(dims), axis, num_axes});
           }),
           "dims"_a, "axis"_a = 0, "num_axes"_a = -1);
}

}  // namespace

void bind_norm_layers(py::module_& layers) {
  bind_normalising(layers);
  bind_softmax(layers);
  bind_joining(layers);
  bind_reduction(layers);
  bind_shapes(layers);
}
