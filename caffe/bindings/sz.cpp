// caffe._core.sz: the compressor on NumPy arrays. The public Python API is caffe/sz.py.
#include "sz/sz.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <map>

#include "caffe/bindings/module.hpp"

namespace py = pybind11;
using namespace pybind11::literals;

namespace {

using FloatArray = py::array_t<float, py::array::c_style>;

sz::Isa parse_isa(const std::string& name) {
  static const std::map<std::string, sz::Isa> names = {
      {"auto", sz::Isa::Auto}, {"scalar", sz::Isa::Scalar}, {"avx2", sz::Isa::Avx2}};
  const auto found = names.find(name);
  if (found == names.end()) {
    throw sz::ArgumentError("sz: isa: is '" + name + "', must be 'auto', 'scalar' or 'avx2'");
  }
  return found->second;
}

sz::Options make_options(double error_bound, bool keep_sign, int64_t row_length, int threads,
                         const std::string& isa) {
  sz::Options options;
  options.error_bound = error_bound;
  options.keep_sign = keep_sign;
  options.row_length = row_length;
  options.threads = threads;
  options.isa = parse_isa(isa);
  return options;
}

// The context lives as long as the call: Python callers are many threads and few calls.
py::bytes compress_array(const FloatArray& array, const sz::Options& options,
                         sz::Statistics* statistics) {
  const std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  const size_t capacity = sz::max_compressed_size(static_cast<size_t>(array.size()), shape.size());
  const std::unique_ptr<uint8_t[]> out(new uint8_t[capacity]);
  const float* src = array.data();
  size_t size = 0;
  {
    const py::gil_scoped_release release;
    sz::Context context;
    size = sz::compress(context, src, shape, options, out.get(), capacity, statistics);
  }
  return py::bytes(reinterpret_cast<const char*>(out.get()), size);
}

py::bytes compress(const FloatArray& array, double error_bound, bool keep_sign, int64_t row_length,
                   int threads, const std::string& isa) {
  const auto options = make_options(error_bound, keep_sign, row_length, threads, isa);
  return compress_array(array, options, nullptr);
}

py::tuple compress_with_statistics(const FloatArray& array, double error_bound, bool keep_sign,
                                   int64_t row_length, int threads, const std::string& isa) {
  sz::Statistics s;
  const auto options = make_options(error_bound, keep_sign, row_length, threads, isa);
  py::bytes stream = compress_array(array, options, &s);
  return py::make_tuple(
      stream, py::dict("count"_a = s.count, "nonzeros"_a = s.nonzeros, "sum"_a = s.sum,
                       "sum_squares"_a = s.sum_squares, "min"_a = s.min, "max"_a = s.max));
}

// A bytes-like object's memory, held for as long as this lives.
struct Bytes {
  py::buffer_info info;
  const uint8_t* data;
  size_t size;

  explicit Bytes(const py::buffer& buffer)
      : info(buffer.request()),
        data(static_cast<const uint8_t*>(info.ptr)),
        size(static_cast<size_t>(info.size * info.itemsize)) {
    const bool contiguous = info.ndim == 0 || (info.ndim == 1 && info.strides[0] == info.itemsize);
    if (!contiguous) throw sz::ArgumentError("sz: data: must be one contiguous run of bytes");
  }
};

FloatArray decompress(const py::buffer& data, int threads, const std::string& isa) {
  const Bytes bytes(data);
  const sz::Isa kernels = parse_isa(isa);
  const sz::Info info = sz::read_info(bytes.data, bytes.size);
  FloatArray array(std::vector<py::ssize_t>(info.shape.begin(), info.shape.end()));
  float* dst = array.mutable_data();
  {
    const py::gil_scoped_release release;
    sz::Context context;
    sz::decompress(context, bytes.data, bytes.size, dst, info.count, threads, kernels);
  }
  return array;
}

py::dict info(const py::buffer& data) {
  const Bytes bytes(data);
  const sz::Info info = sz::read_info(bytes.data, bytes.size);
  return py::dict("version"_a = info.version, "dtype"_a = info.dtype,
                  "shape"_a = py::tuple(py::cast(info.shape)), "error_bound"_a = info.error_bound,
                  "keep_sign"_a = info.keep_sign, "raw_bytes"_a = info.raw_bytes,
                  "compressed_bytes"_a = info.compressed_bytes, "chunks"_a = info.chunks);
}

}  // namespace

void bind_sz(py::module_& m) {
  py::module_ sz = m.def_submodule("sz", "Error-bounded compression of float arrays.");
  py::register_exception<sz::Error>(sz, "Error", PyExc_RuntimeError);
  // Registered after the base class, so tried before it.
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const sz::ArgumentError& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });
  sz.def("compress", &compress, "array"_a.noconvert(), "error_bound"_a, "keep_sign"_a = false,
         "row_length"_a = 0, "threads"_a = 0, "isa"_a = "auto");
  sz.def("compress_with_statistics", &compress_with_statistics, "array"_a.noconvert(),
         "error_bound"_a, "keep_sign"_a = false, "row_length"_a = 0, "threads"_a = 0,
         "isa"_a = "auto");
  sz.def("decompress", &decompress, "data"_a, "threads"_a = 0, "isa"_a = "auto");
  sz.def("info", &info, "data"_a);
  sz.def(
      "supported", [](const std::string& isa) { return sz::supported(parse_isa(isa)); }, "isa"_a);
  sz.def("max_compressed_size", &sz::max_compressed_size, "count"_a, "dims"_a);
}
