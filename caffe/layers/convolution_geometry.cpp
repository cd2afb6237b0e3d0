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

// Checks what both kinds need of bottom and options; returns the kernel, one value an axis.
Shape check_options(const ConvolutionOptions& options, const Shape& bottom) {
  require(bottom.size() >= 3 && bottom.size() <= 5, "bottom 0 is ", shape_string(bottom),
          ", needs 3 to 5 axes: batch, channels and 1 to 3 spatial ones");
  require(canonical_axis(options.axis, bottom.size()) == 1, "axis is ", options.axis,
          ", but only 1 is supported for the channels");
  require(shape_count(bottom) > 0, "bottom 0 is ", shape_string(bottom), ": empty");
  require(options.num_output > 0, "num_output is ", options.num_output, ", needs to be positive");
  require(options.group > 0 && bottom[1] % options.group == 0 &&
              options.num_output % options.group == 0,
          "group is ", options.group, ", needs to divide ", bottom[1], " channels and num_output ",
          options.num_output);
  require(!options.kernel.empty(), "has no kernel_size");
  return per_axis("kernel_size", options.kernel, bottom.size() - 2, 1, 1);
}

ConvolutionSteps steps_of(const ConvolutionOptions& options, size_t axes) {
  return {per_axis("stride", options.stride, axes, 1, 1),
          per_axis("dilation", options.dilation, axes, 1, 1),
          per_axis("pad", options.pad, axes, 0, 0)};
}

// Weights from `inputs` channels to `outputs`.
void set_weights(const Shape& kernel, int64_t outputs, int64_t inputs, int64_t group,
                 ConvolutionGeometry& geometry) {
  geometry.weights = {outputs, inputs / group};
  geometry.weights.insert(geometry.weights.end(), kernel.begin(), kernel.end());
  geometry.grouped_weights = geometry.weights;
  if (group > 1) {
    geometry.grouped_weights[0] /= group;
    geometry.grouped_weights.insert(geometry.grouped_weights.begin(), group);
  }
}

}  // namespace

ConvolutionGeometry convolution_geometry(const ConvolutionOptions& options, const Shape& src) {
  const Shape kernel = check_options(options, src);
  ConvolutionGeometry geometry;
  geometry.steps = steps_of(options, kernel.size());
  geometry.src = src;
  geometry.dst = {src[0], options.num_output};
  const ConvolutionSteps& steps = geometry.steps;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t reach = steps.dilation[i] * (kernel[i] - 1) + 1;
    const int64_t room = src[i + 2] + 2 * steps.pad[i];
    require(reach <= room, "the kernel reaches over ", reach, " positions, but bottom 0 (",
            shape_string(src), ") has ", room, " with padding");
    geometry.dst.push_back((room - reach) / steps.stride[i] + 1);
  }
  set_weights(kernel, options.num_output, src[1], options.group, geometry);
  return geometry;
}

ConvolutionGeometry deconvolution_geometry(const ConvolutionOptions& options, const Shape& dst) {
  const Shape kernel = check_options(options, dst);
  ConvolutionGeometry geometry;
  geometry.steps = steps_of(options, kernel.size());
  geometry.dst = dst;
  geometry.src = {dst[0], options.num_output};
  const ConvolutionSteps& steps = geometry.steps;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t reach = steps.dilation[i] * (kernel[i] - 1) + 1;
    const int64_t size = steps.stride[i] * (dst[i + 2] - 1) + reach - 2 * steps.pad[i];
    require(size > 0, "bottom 0 (", shape_string(dst), ") makes a top of ", size,
            " positions along spatial axis ", i, "; a smaller pad is needed");
    geometry.src.push_back(size);
  }
  set_weights(kernel, dst[1], options.num_output, options.group, geometry);
  return geometry;
}

}  // namespace caffe
