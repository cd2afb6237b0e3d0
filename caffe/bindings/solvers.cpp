// caffe._core.solvers: the update rules.
#include "caffe/bindings/module.hpp"
#include "caffe/solvers/update.hpp"

namespace py = pybind11;
using namespace caffe;  // NOLINT: bindings name nearly everything of it
using namespace pybind11::literals;

void bind_solvers(py::module_& m) {
  using Release = py::call_guard<py::gil_scoped_release>;
  py::module_ solvers = m.def_submodule("solvers", "Update rules, one pass each.");
  py::enum_<Regularization>(solvers, "Regularization")
      .value("L2", Regularization::L2)
      .value("L1", Regularization::L1);
  py::class_<UpdateOptions>(solvers, "UpdateOptions")
      .def(py::init(
               [](float rate, float gradient_scale, float decay, Regularization regularization) {
                 return UpdateOptions{rate, gradient_scale, decay, regularization};
               }),
           "rate"_a, "gradient_scale"_a = 1.0f, "decay"_a = 0.0f,
           "regularization"_a = Regularization::L2);
  solvers.def("update_sgd", &update_sgd, "parameter"_a, "history"_a, "options"_a, "momentum"_a,
              Release());
  solvers.def("update_nesterov", &update_nesterov, "parameter"_a, "history"_a, "options"_a,
              "momentum"_a, Release());
  solvers.def("update_adagrad", &update_adagrad, "parameter"_a, "history"_a, "options"_a, "delta"_a,
              Release());
  solvers.def("update_rmsprop", &update_rmsprop, "parameter"_a, "history"_a, "options"_a,
              "rms_decay"_a, "delta"_a, Release());
  solvers.def("update_adadelta", &update_adadelta, "parameter"_a, "gradient_squares"_a,
              "update_squares"_a, "options"_a, "momentum"_a, "delta"_a, Release());
  solvers.def("update_adam", &update_adam, "parameter"_a, "mean"_a, "square"_a, "options"_a,
              "beta1"_a, "beta2"_a, "delta"_a, "step"_a, Release());
  solvers.def("gradient_sum_squares", &gradient_sum_squares, Release());
}
