// An n-dimensional float array, or a packed bit mask of one, in arena memory.
//
// A Tensor is a handle: copies share the buffer. It is plain row-major (NCHW for images). It knows
// nothing of gradients, names or compression.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caffe/core/arena.hpp"

namespace caffe {

using Shape = std::vector<int64_t>;

// Product of shape[first..last); 1 when empty. Throws ConfigError when it passes 2^62.
int64_t shape_count(const Shape& shape, size_t first, size_t last);
int64_t shape_count(const Shape& shape);
// "64x3x28x28"; "()" for a scalar.
std::string shape_string(const Shape& shape);
// A possibly negative axis as an index below `axes`; ConfigError otherwise.
size_t canonical_axis(int64_t axis, size_t axes);

enum class DType : uint8_t {
  Float32,
  Mask,  // one bit a value, value i in bit i % 64 of 64-bit word i / 64: set where the value is > 0
};

class Tensor {
 public:
  Tensor() = default;  // undefined: holds nothing

  // Contents are undefined.
  static Tensor make(Shape shape, MemoryKind kind, DType dtype = DType::Float32);

  bool defined() const { return block_ != nullptr; }
  const Shape& shape() const { return shape_; }
  size_t axes() const { return shape_.size(); }
  int64_t dim(size_t axis) const { return shape_[axis]; }
  int64_t count() const { return count_; }
  int64_t count(size_t first, size_t last) const { return shape_count(shape_, first, last); }
  DType dtype() const { return dtype_; }
  bool is_mask() const { return dtype_ == DType::Mask; }
  size_t bytes() const { return bytes_needed(count_, dtype_); }
  const std::shared_ptr<Block>& block() const { return block_; }
  bool shares_buffer(const Tensor& other) const {
    return block_ == other.block_ && offset_ == other.offset_;
  }

  float* data() const { return reinterpret_cast<float*>(block_->data()) + offset_; }
  uint64_t* mask_words() const { return reinterpret_cast<uint64_t*>(block_->data()); }

  // The same buffer under another shape of equal count.
  Tensor reshaped(Shape shape) const;
  // Elements [begin, end) of axis 0, in the same buffer. ConfigError for a mask or a scalar.
  Tensor slice(int64_t begin, int64_t end) const;

  static size_t bytes_needed(int64_t count, DType dtype);

 private:
  Shape shape_;
  int64_t count_ = 0;
  DType dtype_ = DType::Float32;
  int64_t offset_ = 0;  // of the first value in the buffer; masks have none
  std::shared_ptr<Block> block_;
};

using Tensors = std::vector<Tensor>;

// A learnable blob and its gradient. The gradient is made when first asked for.
struct Parameter {
  explicit Parameter(Shape shape);

  Tensor data;
  // Where a layer adds its gradient. After clear_gradient() the contents are undefined and
  // `gradient_is_zero` is true: the first layer may overwrite instead of adding, and then says so.
  Tensor& gradient();
  bool has_gradient() const { return gradient_.defined(); }
  void clear_gradient() { gradient_is_zero = true; }
  // Writes the zeros that clear_gradient() left out, for readers other than layers.
  Tensor& settled_gradient();

  bool gradient_is_zero = true;

 private:
  Tensor gradient_;
};

}  // namespace caffe
