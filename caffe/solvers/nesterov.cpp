#include "caffe/solvers/update_loop.hpp"

namespace caffe {

void update_nesterov(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                     float momentum) {
  float* h = history_values(history, parameter);
  const float rate = options.rate;
  update_each(parameter, options, [=](int64_t i, float g) {
    const float old = h[i];
    h[i] = momentum * old + rate * g;
    return (1.0f + momentum) * h[i] - momentum * old;
  });
}

}  // namespace caffe
