// The solvers' update rules, fused: one pass over parameter, gradient and histories each.
//
// g is the gradient that UpdateOptions make of a parameter's; rate is theirs too; every operation is
// float, in the order written. Learning-rate policy, clipping's norm over all parameters and order of
// steps belong to Python.
#pragma once

#include "caffe/core/tensor.hpp"

namespace caffe {

enum class Regularization : uint8_t { L2, L1 };

// What every rule needs. g = gradient_scale * gradient + decay * (w or sign(w)).
struct UpdateOptions {
  float rate = 0;            // learning rate of this parameter: lr * lr_mult
  float gradient_scale = 1;  // clipping and 1 / iter_size
  float decay = 0;           // weight_decay * decay_mult
  Regularization regularization = Regularization::L2;
};

// Caffe's momentum: h = momentum * h + rate * g; w -= h.
void update_sgd(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                float momentum);

// Nesterov's accelerated gradient, h as SGD's: w -= (1 + momentum) * h_new - momentum * h_old.
void update_nesterov(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                     float momentum);

// AdaGrad (Duchi 2011): h += g^2; w -= rate * g / (sqrt(h) + delta).
void update_adagrad(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                    float delta);

// RMSProp (Tieleman 2012): h = decay * h + (1 - decay) * g^2; w -= rate * g / (sqrt(h) + delta).
void update_rmsprop(Parameter& parameter, const Tensor& history, const UpdateOptions& options,
                    float rms_decay, float delta);

// AdaDelta (Zeiler 2012), with Caffe's rate on top:
//   h = momentum * h + (1 - momentum) * g^2;  u = g * sqrt((s + delta) / (h + delta))
//   s = momentum * s + (1 - momentum) * u^2;  w -= rate * u
// h: squares of gradients; s: squares of updates.
void update_adadelta(Parameter& parameter, const Tensor& gradient_squares,
                     const Tensor& update_squares, const UpdateOptions& options, float momentum,
                     float delta);

// Adam (Kingma 2015), the efficient order of its section 2:
//   m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
//   w -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + delta)
// step: t, from 1.
void update_adam(Parameter& parameter, const Tensor& mean, const Tensor& square,
                 const UpdateOptions& options, float beta1, float beta2, float delta, int64_t step);

// Sum of squares of a gradient, in double.
double gradient_sum_squares(Parameter& parameter);

}  // namespace caffe
