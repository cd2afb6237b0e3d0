// The options of a convolution and what follows from them for one shape of bottom.
#pragma once

#include "caffe/core/onednn_compat.hpp"

namespace caffe {

struct ConvolutionOptions {
  int64_t num_output = 0;
  bool bias = true;
  int64_t group = 1;
  int64_t axis = 1;  // the channel axis; only 1 is supported
  // One value for all spatial axes, or one each; empty where the default holds (0, 1 and 1).
  Shape kernel, pad, stride, dilation;
};

struct ConvolutionGeometry {
  Shape src, dst;          // N x channels x spatial...
  Shape weights;           // channels of dst x channels of src / group x kernel...
  Shape grouped_weights;   // the same with the group as an axis in front, if there is more than one
  ConvolutionSteps steps;  // one value for each spatial axis
};

// Throws ConfigError where options and shape do not fit.
ConvolutionGeometry convolution_geometry(const ConvolutionOptions& options, const Shape& src);
// Of the convolution whose transpose the options ask for: from a top to `dst`, the bottom.
ConvolutionGeometry deconvolution_geometry(const ConvolutionOptions& options, const Shape& dst);

}  // namespace caffe
