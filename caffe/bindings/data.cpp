// caffe._core.data: the transformation of image batches; python/caffe/data/transform.py calls it.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "caffe/bindings/module.hpp"
#include "caffe/core/error.hpp"
#include "caffe/data/transform.hpp"

namespace py = pybind11;
using namespace caffe;  // NOLINT: bindings name nearly everything of it
using namespace pybind11::literals;

namespace {

using FloatArray = py::array_t<float, py::array::c_style>;
using ShapeArray = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;

// A view of one image: bytes (any buffer of single bytes) or a float32 buffer of `shape`.
SourceImage view_image(const py::buffer_info& buffer, const ImageShape& shape, size_t index) {
  SourceImage image;
  image.shape = shape;
  if (buffer.itemsize == 1) {
    image.bytes = static_cast<const uint8_t*>(buffer.ptr);
  } else {
    require(buffer.item_type_is_equivalent_to<float>(), "image ", index,
            " of the batch holds neither bytes nor float32");
    image.floats = static_cast<const float*>(buffer.ptr);
  }
  int64_t stride = buffer.itemsize;
  for (int64_t axis = buffer.ndim - 1; axis >= 0; --axis) {
    require(buffer.shape[axis] <= 1 || buffer.strides[axis] == stride, "image ", index,
            " of the batch is not contiguous");
    stride *= buffer.shape[axis];
  }
  require(buffer.size == shape.count(), "image ", index, " of the batch holds ", buffer.size,
          " values, its shape ", shape.channels, "x", shape.height, "x", shape.width, " needs ",
          shape.count());
  return image;
}

void transform(const std::vector<py::buffer>& images, const ShapeArray& shapes,
               const TransformOptions& options, uint64_t first_index, FloatArray& out) {
  require(shapes.ndim() == 2 && shapes.shape(1) == 3 &&
              shapes.shape(0) == static_cast<py::ssize_t>(images.size()),
          "shapes must be N x 3, one row for each of ", images.size(), " images");
  std::vector<py::buffer_info> buffers;
  std::vector<SourceImage> views;
  buffers.reserve(images.size());
  views.reserve(images.size());
  int64_t values = 0;
  for (size_t i = 0; i < images.size(); ++i) {
    buffers.push_back(images[i].request());
    const ImageShape shape{shapes.at(i, 0), shapes.at(i, 1), shapes.at(i, 2)};
    views.push_back(view_image(buffers.back(), shape, i));
    values += options.crop_size > 0 ? shape.channels * options.crop_size * options.crop_size
                                    : shape.count();
  }
  require(out.size() == values, "the output holds ", out.size(), " values, the batch ", values);
  float* dst = out.mutable_data();
  py::gil_scoped_release release;
  transform_batch(views, options, first_index, dst);
}

}  // namespace

void bind_data(py::module_& m) {
  py::module_ data = m.def_submodule("data", "Batch transformation.");
  py::class_<TransformOptions>(data, "TransformOptions")
      .def(py::init<>())
      .def_readwrite("crop_size", &TransformOptions::crop_size)
      .def_readwrite("random_crop", &TransformOptions::random_crop)
      .def_readwrite("mirror", &TransformOptions::mirror)
      .def_readwrite("scale", &TransformOptions::scale)
      .def_readwrite("mean", &TransformOptions::mean)
      .def_readwrite("random_key", &TransformOptions::random_key);
  data.def(
      "draw_window",
      [](const TransformOptions& options, int64_t channels, int64_t height, int64_t width,
         uint64_t index) {
        const Window window = draw_window(options, {channels, height, width}, index);
        return py::make_tuple(window.top, window.left, window.mirror);
      },
      "options"_a, "channels"_a, "height"_a, "width"_a, "index"_a,
      "(top, left, mirror) of image number `index`.");
  data.def("transform_batch", &transform, "images"_a, "shapes"_a, "options"_a, "first_index"_a,
           "out"_a.noconvert(), "Transforms images number first_index, ... into `out`.");
}
