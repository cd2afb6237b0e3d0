// Declares the parts of the extension caffe._core.
#pragma once

#include <pybind11/pybind11.h>

#include <oneapi/dnnl/dnnl.hpp>

void bind_memory(pybind11::module_& m);
void bind_tensor(pybind11::module_& m);
void bind_sz(pybind11::module_& m);
void bind_store(pybind11::module_& m);
void bind_layers(pybind11::module_& m);
void bind_conv_layers(pybind11::module_& layers);         // called by bind_layers
void bind_elementwise_layers(pybind11::module_& layers);  // called by bind_layers
void bind_norm_layers(pybind11::module_& layers);         // called by bind_layers
void bind_solvers(pybind11::module_& m);
void bind_data(pybind11::module_& m);
