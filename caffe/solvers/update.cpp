#include "caffe/solvers/update.hpp"

#include "caffe/core/error.hpp"
#include "caffe/core/parallel.hpp"

namespace caffe {
namespace {

float decay_term(Regularization regularization, float weight) {
  if (regularization == Regularization::L2) return weight;
  return static_cast<float>((weight > 0) - (weight < 0));
}

}  // namespace

void update_sgd(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                float momentum) {
  require(history.count() == parameter.data.count(), "history of ", shape_string(history.shape()),
          " does not fit a parameter of ", shape_string(parameter.data.shape()));
  const float* g = parameter.settled_gradient().data();
  float* w = parameter.data.data();
  float* h = history.data();
  const UpdateOptions o = options;
  parallel_for(history.count(), kParallelGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float gradient = o.gradient_scale * g[i] + o.decay * decay_term(o.regularization, w[i]);
      h[i] = momentum * h[i] + o.rate * gradient;
      w[i] -= h[i];
    }
  });
}

double gradient_sum_squares(Parameter& parameter) {
  const Tensor& gradient = parameter.settled_gradient();
  const float* g = gradient.data();
  return parallel_sum<double>(gradient.count(), [=](int64_t begin, int64_t end) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += static_cast<double>(g[i]) * g[i];
    return sum;
  });
}

}  // namespace caffe
