// What the update rules share: the loop over a parameter's values.
#pragma once

#include "caffe/core/error.hpp"
#include "caffe/core/parallel.hpp"
#include "caffe/solvers/update.hpp"

namespace caffe {

// The values of a history; Error where it is not the parameter's size.
inline float* history_values(const Tensor& history, const Parameter& parameter) {
  require(history.count() == parameter.data.count(), "history of ", shape_string(history.shape()),
          " does not fit a parameter of ", shape_string(parameter.data.shape()));
  return history.data();
}

// w[i] -= rule(i, g) for each i. Each value is on its own: any number of threads gives the same.
template <typename Rule>
void update_each(Parameter& parameter, const UpdateOptions& options, const Rule& rule) {
  const float* gradient = parameter.settled_gradient().data();
  float* w = parameter.data.data();
  const float scale = options.gradient_scale, decay = options.decay;
  const bool is_l2 = options.regularization == Regularization::L2;
  parallel_for(parameter.data.count(), kParallelGrain, [=](int64_t begin, int64_t end) {
    if (is_l2) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) w[i] -= rule(i, scale * gradient[i] + decay * w[i]);
    } else {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float sign = (w[i] > 0 ? 1.0f : 0.0f) - (w[i] < 0 ? 1.0f : 0.0f);
        w[i] -= rule(i, scale * gradient[i] + decay * sign);
      }
    }
  });
}

}  // namespace caffe
