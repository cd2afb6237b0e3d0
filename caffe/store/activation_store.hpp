// Keeps activations between forward and backward: raw, compressed, or as one bit a value.
//
// Knows how, not what or when: the memory plan decides the form, the error-bound control the bound.
#pragma once

#include <memory>
#include <optional>

#include "caffe/core/tensor.hpp"
#include "sz/sz.hpp"

namespace caffe {

enum class Form : uint8_t {
  Raw,       // the buffer itself
  Lossless,  // sz with a bound of 0
  Bounded,   // sz with a bound
  Sign,      // one bit a value: x > 0
};

// One activation as it is kept. Frees its memory when destroyed.
class StoredActivation {
 public:
  Form form() const { return form_; }
  int64_t raw_bytes() const { return raw_bytes_; }
  int64_t stored_bytes() const;
  double error_bound() const { return error_bound_; }
  // Of the original values; empty (count 0) where nobody asked, and for Raw and Sign.
  const sz::Statistics& statistics() const { return statistics_; }

 private:
  friend class ActivationStore;

  Form form_ = Form::Raw;
  Shape shape_;
  int64_t raw_bytes_ = 0;
  double error_bound_ = 0;
  sz::Statistics statistics_;
  Tensor tensor_;                 // Raw and Sign
  std::shared_ptr<Block> bytes_;  // Lossless and Bounded
};

class ActivationStore {
 public:
  // Keeps `tensor`, which must be float32. dither: a seed, Bounded only. `expected_bytes` is a guess of the compressed size (0: none)
  // that saves the worst-case buffer; a wrong guess costs a second compression.
  // error_bound: absolute, Bounded only. `count_values`: whether statistics() are wanted; they cost
  // about a third of the compressor's speed. negative_factor: the bound of negative values in error
  // bounds, 1 to 1024, Bounded only; other than 1 it needs keep_sign. Throws sz::ArgumentError where
  // the bound or the factor makes no sense.
  std::shared_ptr<StoredActivation> save(const Tensor& tensor, Form form, double error_bound,
                                         bool keep_sign, std::optional<uint32_t> dither,
                                         int64_t expected_bytes, bool count_values,
                                         double negative_factor = 1);
  // The values again; a mask for Sign. Raw gives the very buffer that was saved.
  Tensor restore(const StoredActivation& stored);
  // Values from index `first` on, dst.count() of them, into `dst`; of Sign, 1 and 0.
  void restore_into(const StoredActivation& stored, int64_t first, const Tensor& dst);

 private:
  sz::Context context_;
};

// Mask of x > 0.
Tensor pack_sign(const Tensor& tensor, MemoryKind kind);

// Share of non-zeros, range and the rest, in one pass.
sz::Statistics statistics_of(const Tensor& tensor);

}  // namespace caffe
