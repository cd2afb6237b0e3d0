// A layer whose top is a function of its bottom, value by value. Any one shape.
//   y = f(x)      dx = dy * slope
// The functions are in elementwise_functions.hpp. One has
//   float value(float x) const             f itself
//   Reading reading() const                what `slope` is worked out from
//   float slope(float read) const          f'(x), from x or from y as reading() says
//   float steepest() const                 the most |f'| can be; infinite where there is no most
//   static constexpr bool kDifferentiable  false: no gradient is passed on
// Backward reads: what the function's reading() says.
#pragma once

#include <cmath>

#include "caffe/core/parallel.hpp"
#include "caffe/layers/layer.hpp"

namespace caffe {

struct Reading {
  enum class What : uint8_t { Nothing, Bottom, Top };
  What what = What::Nothing;
  Quality quality = Quality::Nothing;
};

template <typename Function>
class ElementwiseLayer : public Layer {
 public:
  explicit ElementwiseLayer(const Function& function)
      : function_(function), reading_(function.reading()) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override {
    check_count("bottoms", bottoms.size(), 1, 1);
    return {bottoms[0]};
  }

  Needs needs(const Propagation& propagation) const override {
    Needs needs = no_needs(1, 1);
    if (!propagation.bottoms[0] || reading_.what == Reading::What::Nothing) return needs;
    (reads_bottom() ? needs.bottoms : needs.tops)[0] = {reading_.quality, BoundRule::Propagated};
    return needs;
  }

  Traits traits() const override {
    Traits traits;
    traits.error_factor = function_.steepest();
    traits.cheap = std::isfinite(traits.error_factor);
    traits.forward_in_place = !reads_bottom();
    traits.backward_in_place = true;
    traits.batch_axis = BatchAxis::Independent;
    traits.slices = true;
    if (!Function::kDifferentiable) traits.differentiable_bottoms = 0;
    return traits;
  }

  void forward(const Tensors& src, const Tensors& dst, const ForwardContext&) override {
    const float* x = src[0].data();
    float* y = dst[0].data();
    const Function f = function_;
    parallel_for(src[0].count(), kParallelGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) y[i] = f.value(x[i]);
    });
  }

  void backward(const BackwardArguments& arguments) override {
    if (!arguments.diff_src[0].defined()) return;
    const float* dy = arguments.diff_dst[0].data();
    const float* read = reading_.what == Reading::What::Nothing ? dy
                        : reads_bottom()                        ? arguments.src[0].data()
                                                                : arguments.dst[0].data();
    float* dx = arguments.diff_src[0].data();
    const Function f = function_;
    parallel_for(arguments.diff_src[0].count(), kParallelGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) dx[i] = dy[i] * f.slope(read[i]);
    });
  }

 private:
  bool reads_bottom() const {
    return reading_.what == Reading::What::Bottom;
  }

  Function function_;
  Reading reading_;
};

}  // namespace caffe
