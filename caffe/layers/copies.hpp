// Parallel copies, for the layers that only move data.
#pragma once

#include "caffe/core/tensor.hpp"

namespace caffe {

// Copies the values, unless both are one buffer already. Counts must be equal.
void copy_unless_shared(const Tensor& from, const Tensor& to);

// Copies `rows` runs of `length` values; runs start `from_stride` and `to_stride` values apart.
void copy_rows(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
               int64_t length);

}  // namespace caffe
