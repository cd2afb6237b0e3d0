// caffe._core.sz: the compressor on NumPy arrays. The public Python API is caffe.sz.
#include "sz/sz.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>

#include "caffe/bindings/module.hpp"

namespace py = pybind11;
using namespace pybind11::literals;

namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style>;

template <typename E>
E parse_name(const char* what, const std::string& name, const std::map<std::string, E>& names) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  std::string known;
  for (const auto& [word, value] : names) known += (known.empty() ? "'" : ", '") + word + "'";
  throw sz::ArgumentError(std::string("sz: ") + what + ": is '" + name + "', must be one of " +
                          known);
}

sz::Isa parse_isa(const std::string& name) {
  return parse_name<sz::Isa>("isa", name,
                             {{"auto", sz::Isa::Auto},
                              {"scalar", sz::Isa::Scalar},
                              {"avx2", sz::Isa::Avx2},
                              {"avx512", sz::Isa::Avx512}});
}

sz::Options make_options(double error_bound, bool keep_sign, const std::string& mode,
                         std::optional<uint32_t> dither, double negative_factor, int64_t row_length,
                         bool checksum, int threads, const std::string& isa) {
  sz::Options options;
  options.error_bound = error_bound;
  options.bound = parse_name<sz::Bound>("mode", mode,
                                        {{"abs", sz::Bound::Absolute}, {"rel", sz::Bound::Range}});
  options.keep_sign = keep_sign;
  options.negative_factor = negative_factor;
  options.dither = dither.has_value();
  options.seed = dither.value_or(0);
  options.row_length = row_length;
  options.checksum = checksum;
  options.threads = threads;
  options.isa = parse_isa(isa);
  return options;
}

// The context lives as long as the call: Python callers are many threads and few calls.
template <typename T>
py::bytes compress_array(const Array<T>& array, const sz::Options& options,
                         sz::Statistics* statistics) {
  const std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  const sz::Type type = sizeof(T) == 4 ? sz::Type::Float32 : sz::Type::Float64;
  const size_t capacity =
      sz::max_compressed_size(static_cast<size_t>(array.size()), shape.size(), type);
  const std::unique_ptr<uint8_t[]> out(new uint8_t[capacity]);
  const T* src = array.data();
  size_t size = 0;
  {
    const py::gil_scoped_release release;
    sz::Context context;
    size = sz::compress(context, src, shape, options, out.get(), capacity, statistics);
  }
  return py::bytes(reinterpret_cast<const char*>(out.get()), size);
}

template <typename T>
py::bytes compress(const Array<T>& array, double error_bound, bool keep_sign,
                   const std::string& mode, std::optional<uint32_t> dither, double negative_factor,
                   int64_t row_length, bool checksum, int threads, const std::string& isa) {
  const auto options = make_options(error_bound, keep_sign, mode, dither, negative_factor,
                                    row_length, checksum, threads, isa);
  return compress_array(array, options, nullptr);
}

template <typename T>
py::tuple compress_with_statistics(const Array<T>& array, double error_bound, bool keep_sign,
                                   const std::string& mode, std::optional<uint32_t> dither,
                                   double negative_factor, int64_t row_length, bool checksum,
                                   int threads, const std::string& isa) {
  sz::Statistics s;
  const auto options = make_options(error_bound, keep_sign, mode, dither, negative_factor,
                                    row_length, checksum, threads, isa);
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

// Decodes values [first, first + dst.size()) into dst.
template <typename T>
void decode_into(const Bytes& bytes, uint64_t first, Array<T>* dst, int threads, sz::Isa isa) {
  T* out = dst->mutable_data();
  const auto count = static_cast<size_t>(dst->size());
  const py::gil_scoped_release release;
  sz::Context context;
  sz::decompress_range(context, bytes.data, bytes.size, first, count, out, threads, isa);
}

template <typename T>
py::array decode(const Bytes& bytes, const std::vector<py::ssize_t>& shape, uint64_t first,
                 int threads, sz::Isa isa) {
  Array<T> array(shape);
  decode_into(bytes, first, &array, threads, isa);
  return std::move(array);
}

py::array decode_as(sz::Type type, const Bytes& bytes, const std::vector<py::ssize_t>& shape,
                    uint64_t first, int threads, sz::Isa isa) {
  return type == sz::Type::Float32 ? decode<float>(bytes, shape, first, threads, isa)
                                   : decode<double>(bytes, shape, first, threads, isa);
}

py::array decompress(const py::buffer& data, int threads, const std::string& isa) {
  const Bytes bytes(data);
  const sz::Isa kernels = parse_isa(isa);
  const sz::Info info = sz::read_info(bytes.data, bytes.size);
  const std::vector<py::ssize_t> shape(info.shape.begin(), info.shape.end());
  return decode_as(info.type, bytes, shape, 0, threads, kernels);
}

// Into an array of the caller's, of the stream's type and number of values.
template <typename T>
void decompress_into(const py::buffer& data, Array<T> out, int threads, const std::string& isa) {
  const Bytes bytes(data);
  const sz::Isa kernels = parse_isa(isa);
  const sz::Info info = sz::read_info(bytes.data, bytes.size);
  if (info.count != static_cast<uint64_t>(out.size())) {
    throw sz::ArgumentError("sz: out: has " + std::to_string(out.size()) +
                            " values, the stream holds " + std::to_string(info.count));
  }
  decode_into(bytes, 0, &out, threads, kernels);
}

py::array decompress_range(const py::buffer& data, uint64_t first, uint64_t count, int threads,
                           const std::string& isa) {
  const Bytes bytes(data);
  const sz::Isa kernels = parse_isa(isa);
  const sz::Info info = sz::read_info(bytes.data, bytes.size);
  if (first > info.count || count > info.count - first) {
    throw sz::ArgumentError("sz: range: values " + std::to_string(first) + " to " +
                            std::to_string(first + count) + " of a stream that holds " +
                            std::to_string(info.count));
  }
  return decode_as(info.type, bytes, {static_cast<py::ssize_t>(count)}, first, threads, kernels);
}

py::dict info(const py::buffer& data) {
  const Bytes bytes(data);
  const sz::Info info = sz::read_info(bytes.data, bytes.size);
  const py::object seed = info.dither ? py::object(py::int_(info.seed)) : py::none();
  return py::dict("version"_a = info.version,
                  "dtype"_a = info.type == sz::Type::Float32 ? "float32" : "float64",
                  "shape"_a = py::tuple(py::cast(info.shape)), "error_bound"_a = info.error_bound,
                  "negative_factor"_a = info.negative_factor, "keep_sign"_a = info.keep_sign,
                  "dither"_a = seed, "checksum"_a = info.checksum, "raw_bytes"_a = info.raw_bytes,
                  "compressed_bytes"_a = info.compressed_bytes, "chunks"_a = info.chunks,
                  "chunk_values"_a = info.chunk_values);
}

template <typename T>
void bind_compress(py::module_& sz) {
  sz.def("compress", &compress<T>, "array"_a.noconvert(), "error_bound"_a, "keep_sign"_a = false,
         "mode"_a = "abs", "dither"_a = py::none(), "negative_factor"_a = 1.0, "row_length"_a = 0,
         "checksum"_a = false, "threads"_a = 0, "isa"_a = "auto");
  sz.def("compress_with_statistics", &compress_with_statistics<T>, "array"_a.noconvert(),
         "error_bound"_a, "keep_sign"_a = false, "mode"_a = "abs", "dither"_a = py::none(),
         "negative_factor"_a = 1.0, "row_length"_a = 0, "checksum"_a = false, "threads"_a = 0,
         "isa"_a = "auto");
  sz.def("decompress_into", &decompress_into<T>, "data"_a, "out"_a.noconvert(), "threads"_a = 0,
         "isa"_a = "auto");
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
  bind_compress<float>(sz);
  bind_compress<double>(sz);
  sz.def("decompress", &decompress, "data"_a, "threads"_a = 0, "isa"_a = "auto");
  sz.def("decompress_range", &decompress_range, "data"_a, "first"_a, "count"_a, "threads"_a = 0,
         "isa"_a = "auto");
  sz.def("info", &info, "data"_a);
  sz.def(
      "supported", [](const std::string& isa) { return sz::supported(parse_isa(isa)); }, "isa"_a);
  sz.def(
      "max_compressed_size",
      [](size_t count, size_t dims, bool float64) {
        return sz::max_compressed_size(count, dims,
                                       float64 ? sz::Type::Float64 : sz::Type::Float32);
      },
      "count"_a, "dims"_a, "float64"_a = false);
}
