// caffe._core.store: the activation store.
#include <pybind11/stl.h>

#include "caffe/bindings/module.hpp"
#include "caffe/store/activation_store.hpp"

namespace py = pybind11;
using namespace caffe;  // NOLINT: bindings name nearly everything of it
using namespace pybind11::literals;

void bind_store(py::module_& m) {
  using Release = py::call_guard<py::gil_scoped_release>;
  py::module_ store = m.def_submodule("store", "Activations between forward and backward.");
  py::enum_<Form>(store, "Form")
      .value("RAW", Form::Raw)
      .value("LOSSLESS", Form::Lossless)
      .value("BOUNDED", Form::Bounded)
      .value("SIGN", Form::Sign);
  py::class_<sz::Statistics>(store, "Statistics")
      .def_readonly("count", &sz::Statistics::count)
      .def_readonly("nonzeros", &sz::Statistics::nonzeros)
      .def_readonly("sum", &sz::Statistics::sum)
      .def_readonly("sum_squares", &sz::Statistics::sum_squares)
      .def_readonly("min", &sz::Statistics::min)
      .def_readonly("max", &sz::Statistics::max);
  py::class_<StoredActivation, std::shared_ptr<StoredActivation>>(store, "StoredActivation")
      .def_property_readonly("form", &StoredActivation::form)
      .def_property_readonly("raw_bytes", &StoredActivation::raw_bytes)
      .def_property_readonly("stored_bytes", &StoredActivation::stored_bytes)
      .def_property_readonly("error_bound", &StoredActivation::error_bound)
      // A copy: a reference would keep the whole activation alive.
      .def_property_readonly("statistics", &StoredActivation::statistics,
                             py::return_value_policy::copy);
  py::class_<ActivationStore>(store, "ActivationStore")
      .def(py::init<>())
      .def("save", &ActivationStore::save, "tensor"_a, "form"_a, "error_bound"_a = 0.0,
           "keep_sign"_a = false, "dither"_a = py::none(), "expected_bytes"_a = 0,
           "count_values"_a = true, "negative_factor"_a = 1.0, Release())
      .def("restore", &ActivationStore::restore, Release())
      .def("restore_into", &ActivationStore::restore_into, "stored"_a, "first"_a, "dst"_a,
           Release());
  store.def("pack_sign", &pack_sign, "tensor"_a, "kind"_a = MemoryKind::Workspace, Release());
  store.def("statistics_of", &statistics_of, "tensor"_a, Release());
}
