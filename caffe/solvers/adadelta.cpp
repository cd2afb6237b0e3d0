#include <cmath>

#include "caffe/solvers/update_loop.hpp"

namespace caffe {

void update_adadelta(Parameter& parameter, const Tensor& gradient_squares,
                     const Tensor& update_squares, const UpdateOptions& options, float momentum,
                     float delta) {
  float* h = history_values(gradient_squares, parameter);
  float* s = history_values(update_squares, parameter);
  const float rate = options.rate, rest = 1.0f - momentum;
  update_each(parameter, options, [=](int64_t i, float g) {
    h[i] = rest * (g * g) + momentum * h[i];
    const float update = g * std::sqrt((s[i] + delta) / (h[i] + delta));
    s[i] = rest * (update * update) + momentum * s[i];
    return rate * update;
  });
}

}  // namespace caffe
