#include "caffe/layers/inner_product.hpp"

#include <algorithm>

#include "caffe/core/onednn.hpp"
#include "caffe/core/parallel.hpp"
#include "caffe/layers/channels.hpp"

namespace caffe {
std::vector<Shape> InnerProductLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  const Shape& src = bottoms[0];
  const int64_t outputs = options_.num_output;
  require(outputs > 0, "num_output is ", outputs, ", needs to be positive");
  const size_t axis = canonical_axis(options_.axis, src.size());
  rows_ = shape_count(src, 0, axis);
  inputs_ = shape_count(src, axis, src.size());
  batch_is_rows_ = axis > 0;
  require(inputs_ > 0, "bottom 0 is ", shape_string(src), ": nothing from axis ", axis, " on");
  if (parameters.empty()) {
    const Shape shape = options_.transpose ? Shape{inputs_, outputs} : Shape{outputs, inputs_};
    parameters.push_back(std::make_shared<Parameter>(shape));
    if (options_.bias) parameters.push_back(std::make_shared<Parameter>(Shape{outputs}));
  }
  const int64_t expected = parameters[0]->data.dim(options_.transpose ? 0 : 1);
  require(inputs_ == expected, "bottom 0 (", shape_string(src), ") has ", inputs_,
          " values from axis ", axis, " on, but its weights are for ", expected);
  Shape dst(src.begin(), src.begin() + static_cast<int64_t>(axis));
  dst.push_back(outputs);
  return {dst};
}

Needs InnerProductLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(1, 1);
  if (propagation.parameters[0]) needs.bottoms[0] = {Quality::Bounded, BoundRule::Gradient};
  return needs;
}

Traits InnerProductLayer::traits() const {
  Traits traits;
  if (batch_is_rows_) traits.batch_axis = BatchAxis::Independent;
  traits.slices = batch_is_rows_;
  return traits;
}

void InnerProductLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  const int64_t outputs = options_.num_output;
  const int64_t rows = src[0].count() / inputs_;
  float* y = dst[0].data();
  if (options_.bias) {
    const float* bias = parameters[1]->data.data();
    parallel_for(rows, kParallelGrain / outputs + 1, [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) std::copy_n(bias, outputs, y + row * outputs);
    });
  }
  const char flag = options_.transpose ? 'N' : 'T';
  gemm('N', flag, rows, outputs, inputs_, 1, src[0].data(), inputs_, parameters[0]->data.data(),
       options_.transpose ? outputs : inputs_, options_.bias ? 1.0f : 0.0f, y, outputs);
}

void InnerProductLayer::backward(const BackwardArguments& arguments) {
  const std::vector<bool>& learns = arguments.propagation.parameters;
  const Tensor& diff_dst = arguments.diff_dst[0];
  if (learns[0]) add_weights_gradient(arguments.src[0], diff_dst);
  if (options_.bias && learns[1]) add_bias_gradient(diff_dst);
  const Tensor& diff_src = arguments.diff_src[0];
  if (!diff_src.defined()) return;
  const int64_t outputs = options_.num_output;
  const char flag = options_.transpose ? 'T' : 'N';
  gemm('N', flag, diff_dst.count() / outputs, inputs_, outputs, 1, diff_dst.data(), outputs,
       parameters[0]->data.data(), options_.transpose ? outputs : inputs_, 0, diff_src.data(),
       inputs_);
}

void InnerProductLayer::add_weights_gradient(const Tensor& src, const Tensor& diff_dst) {
  Parameter& parameter = *parameters[0];
  const int64_t outputs = options_.num_output;
  const int64_t rows = src.count() / inputs_;
  float* dw = parameter.gradient().data();
  const float beta = parameter.gradient_is_zero ? 0.0f : 1.0f;
  if (options_.transpose) {
    gemm('T', 'N', inputs_, outputs, rows, 1, src.data(), inputs_, diff_dst.data(), outputs, beta,
         dw, outputs);
  } else {
    gemm('T', 'N', outputs, inputs_, rows, 1, diff_dst.data(), outputs, src.data(), inputs_, beta,
         dw, inputs_);
  }
  parameter.gradient_is_zero = false;
}

void InnerProductLayer::add_bias_gradient(const Tensor& diff_dst) {
  Parameter& parameter = *parameters[1];
  const Tensor& sum = parameter.gradient();
  channel_sums(diff_dst.data(), ChannelShape::of(diff_dst.shape(), diff_dst.axes() - 1, 1),
               !parameter.gradient_is_zero, sum.data());
  parameter.gradient_is_zero = false;
}

}  // namespace caffe
