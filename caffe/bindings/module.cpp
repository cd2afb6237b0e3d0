// The Python extension caffe._core: one bind_* function a topic, each in its own file.
#include "caffe/bindings/module.hpp"

#include <omp.h>

#include "caffe/core/error.hpp"

namespace py = pybind11;

PYBIND11_MODULE(_core, m) {
  m.doc() = "The C++ core of COMET; use it through the package caffe.";
  py::register_exception<caffe::Error>(m, "Error", PyExc_RuntimeError);
  // ConfigError is a std::invalid_argument, which pybind11 turns into ValueError.
  m.def("onednn_version", [] {
    const dnnl_version_t* version = dnnl_version();
    return caffe::message(version->major, ".", version->minor, ".", version->patch);
  });
  m.def("num_threads", [] { return omp_get_max_threads(); });
  m.def("set_num_threads", [](int threads) {
    caffe::require(threads >= 1, "thread count is ", threads, ", needs to be at least 1");
    omp_set_num_threads(threads);
  });
  bind_memory(m);
  bind_tensor(m);
  bind_sz(m);
  bind_store(m);
  bind_layers(m);
  bind_solvers(m);
  bind_data(m);
}
