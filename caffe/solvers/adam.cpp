#include <cmath>

#include "caffe/solvers/update_loop.hpp"

namespace caffe {

void update_adam(Parameter& parameter, const Tensor& mean, const Tensor& square,
                 const UpdateOptions& options, float beta1, float beta2, float delta,
                 int64_t step) {
  float* m = history_values(mean, parameter);
  float* v = history_values(square, parameter);
  const double t = static_cast<double>(step);
  const double correction =
      std::sqrt(1.0 - std::pow(double{beta2}, t)) / (1.0 - std::pow(double{beta1}, t));
  const float rate = options.rate * static_cast<float>(correction);
  const float rest1 = 1.0f - beta1, rest2 = 1.0f - beta2;
  update_each(parameter, options, [=](int64_t i, float g) {
    m[i] = rest1 * g + beta1 * m[i];
    v[i] = rest2 * (g * g) + beta2 * v[i];
    return rate * (m[i] / (std::sqrt(v[i]) + delta));
  });
}

}  // namespace caffe
