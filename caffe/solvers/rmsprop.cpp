#include <cmath>

#include "caffe/solvers/update_loop.hpp"

namespace caffe {

void update_rmsprop(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                    float rms_decay, float delta) {
  float* h = history_values(history, parameter);
  const float rate = options.rate, rest = 1.0f - rms_decay;
  update_each(parameter, options, [=](int64_t i, float g) {
    h[i] = rest * (g * g) + rms_decay * h[i];
    return rate * (g / (std::sqrt(h[i]) + delta));
  });
}

}  // namespace caffe
