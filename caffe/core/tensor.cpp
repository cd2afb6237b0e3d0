#include "caffe/core/tensor.hpp"

#include <cstring>
#include <utility>

#include "caffe/core/error.hpp"

namespace caffe {

int64_t shape_count(const Shape& shape, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t axis = first; axis < last; ++axis) {
    require(shape[axis] >= 0, "shape ", shape_string(shape), " has a negative dimension");
    require(shape[axis] == 0 || count <= (int64_t{1} << 62) / shape[axis], "shape ",
            shape_string(shape), " has more than 2^62 values");
    count *= shape[axis];
  }
  return count;
}

int64_t shape_count(const Shape& shape) {
  return shape_count(shape, 0, shape.size());
}

std::string shape_string(const Shape& shape) {
  if (shape.empty()) return "()";
  std::string text = std::to_string(shape[0]);
  for (size_t axis = 1; axis < shape.size(); ++axis) text += "x" + std::to_string(shape[axis]);
  return text;
}

size_t canonical_axis(int64_t axis, size_t axes) {
  const int64_t count = static_cast<int64_t>(axes);
  require(axis >= -count && axis < count, "axis ", axis, " is out of range for ", axes, " axes");
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

size_t Tensor::bytes_needed(int64_t count, DType dtype) {
  if (dtype == DType::Mask) return static_cast<size_t>((count + 63) / 64 * 8);
  return static_cast<size_t>(count) * sizeof(float);
}

Tensor Tensor::make(Shape shape, MemoryKind kind, DType dtype) {
  Tensor tensor;
  tensor.count_ = shape_count(shape);
  tensor.shape_ = std::move(shape);
  tensor.dtype_ = dtype;
  tensor.block_ = Arena::instance().allocate(tensor.bytes(), kind);
  return tensor;
}

Tensor Tensor::reshaped(Shape shape) const {
  require(shape_count(shape) == count_, "cannot view ", shape_string(shape_), " as ",
          shape_string(shape), ": the number of values differs");
  Tensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  require(!is_mask() && !shape_.empty(), "only values with a batch axis have slices");
  require(0 <= begin && begin <= end && end <= shape_[0], "slice ", begin, " to ", end, " of ",
          shape_string(shape_), " does not exist");
  Tensor view = *this;
  view.offset_ += begin * count(1, axes());
  view.shape_[0] = end - begin;
  view.count_ = shape_count(view.shape_);
  return view;
}

Parameter::Parameter(Shape shape) : data(Tensor::make(std::move(shape), MemoryKind::Parameters)) {
  std::memset(data.data(), 0, data.bytes());
}

Tensor& Parameter::gradient() {
  if (!gradient_.defined()) {
    gradient_ = Tensor::make(data.shape(), MemoryKind::ParameterGradients);
    gradient_is_zero = true;
  }
  return gradient_;
}

Tensor& Parameter::settled_gradient() {
  Tensor& tensor = gradient();
  if (gradient_is_zero) {
    std::memset(tensor.data(), 0, tensor.bytes());
    gradient_is_zero = false;
  }
  return tensor;
}

}  // namespace caffe
