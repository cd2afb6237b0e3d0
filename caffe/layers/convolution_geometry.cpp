#include "caffe/layers/convolution_geometry.hpp"

#include "caffe/core/error.hpp"

namespace caffe {
namespace {

// `values` as one for each spatial axis.
Shape per_axis(const char* what, const Shape& values, size_t axes, int64_t otherwise,
               int64_t least) {
  require(values.size() <= 1 || values.size() == axes, "has ", values.size(), " values of ", what,
          ", needs 1 or ", axes, ", one for each spatial axis");
  Shape result(axes, values.empty() ? otherwise : values[0]);
  if (values.size() == axes) result = values;
  for (int64_t value : result) {
    require(value >= least, what, " is ", value, ", needs to be at least ", least);
  }
  return result;
}

}  // namespace

ConvolutionGeometry convolution_geometry(const ConvolutionOptions& options, const Shape& src) {
  require(src.size() >= 3 && src.size() <= 5, "bottom 0 is ", shape_string(src),
          ", needs 3 to 5 axes: batch, channels and 1 to 3 spatial ones");
  require(canonical_axis(options.axis, src.size()) == 1, "axis is ", options.axis,
          ", but only 1 is supported for the channels");
  require(shape_count(src) > 0, "bottom 0 is ", shape_string(src), ": empty");
  const int64_t channels = src[1];
  const int64_t outputs = options.num_output;
  const int64_t group = options.group;
  require(outputs > 0, "num_output is ", outputs, ", needs to be positive");
  require(group > 0 && channels % group == 0 && outputs % group == 0, "group is ", group,
          ", needs to divide ", channels, " channels and num_output ", outputs);
  require(!options.kernel.empty(), "has no kernel_size");

  const size_t axes = src.size() - 2;
  const Shape kernel = per_axis("kernel_size", options.kernel, axes, 1, 1);
  ConvolutionGeometry geometry;
  geometry.steps = {per_axis("stride", options.stride, axes, 1, 1),
                    per_axis("dilation", options.dilation, axes, 1, 1),
                    per_axis("pad", options.pad, axes, 0, 0)};
  geometry.src = src;
  geometry.dst = {src[0], outputs};
  for (size_t i = 0; i < axes; ++i) {
    const ConvolutionSteps& steps = geometry.steps;
    const int64_t reach = steps.dilation[i] * (kernel[i] - 1) + 1;
    const int64_t room = src[i + 2] + 2 * steps.pad[i];
    require(reach <= room, "the kernel reaches over ", reach, " positions, but bottom 0 (",
            shape_string(src), ") has ", room, " with padding");
    geometry.dst.push_back((room - reach) / steps.stride[i] + 1);
  }
  geometry.weights = {outputs, channels / group};
  geometry.weights.insert(geometry.weights.end(), kernel.begin(), kernel.end());
  geometry.grouped_weights = geometry.weights;
  if (group > 1) {
    geometry.grouped_weights[0] /= group;
    geometry.grouped_weights.insert(geometry.grouped_weights.begin(), group);
  }
  return geometry;
}

}  // namespace caffe
