// The solvers' update rules, fused: one pass over parameter, gradient and history.
//
// Learning-rate policy, clipping's norm over all parameters and order of steps belong to Python.
#pragma once

#include "caffe/core/tensor.hpp"

namespace caffe {

enum class Regularization : uint8_t { L2, L1 };

// What every rule needs. The gradient used is gradient_scale * g + decay * (w or sign(w)).
struct UpdateOptions {
  float rate = 0;            // learning rate of this parameter: lr * lr_mult
  float gradient_scale = 1;  // clipping and 1 / iter_size
  float decay = 0;           // weight_decay * decay_mult
  Regularization regularization = Regularization::L2;
};

// Caffe's momentum: history = momentum * history + rate * gradient; w -= history.
void update_sgd(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                float momentum);

// Sum of squares of a gradient, in double.
double gradient_sum_squares(Parameter& parameter);

}  // namespace caffe
