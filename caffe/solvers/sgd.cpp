#include "caffe/solvers/update_loop.hpp"

namespace caffe {

void update_sgd(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                float momentum) {
  float* h = history_values(history, parameter);
  const float rate = options.rate;
  update_each(parameter, options, [=](int64_t i, float g) {
    h[i] = momentum * h[i] + rate * g;
    return h[i];
  });
}

}  // namespace caffe
