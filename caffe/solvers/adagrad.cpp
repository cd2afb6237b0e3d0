#include <cmath>

#include "caffe/solvers/update_loop.hpp"

namespace caffe {

void update_adagrad(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                    float delta) {
  float* h = history_values(history, parameter);
  const float rate = options.rate;
  update_each(parameter, options, [=](int64_t i, float g) {
    h[i] += g * g;
    return rate * (g / (std::sqrt(h[i]) + delta));
  });
}

}  // namespace caffe
