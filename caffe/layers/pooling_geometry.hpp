// The options of a pooling layer and what follows from them for one shape of bottom.
#pragma once

#include "caffe/core/tensor.hpp"
#include "caffe/layers/pooling_kernels.hpp"

namespace caffe {

enum class PoolMethod : uint8_t { Max, Average, Stochastic };
enum class RoundMode : uint8_t { Ceil, Floor };

struct PoolingOptions {
  PoolMethod method = PoolMethod::Max;
  bool global = false;  // one window that is the whole plane; kernel is not read
  int64_t kernel_h = 0, kernel_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;
  RoundMode round = RoundMode::Ceil;
  bool mask_top = false;
};

// Throws ConfigError where options and shape do not fit.
PoolPlane pooling_plane(const PoolingOptions& options, const Shape& src);

}  // namespace caffe
