#include "caffe/core/parallel.hpp"
#include "caffe/solvers/update.hpp"

namespace caffe {

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
