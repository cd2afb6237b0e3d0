// What every layer of the core is: shapes, needs, forward, backward.
//
// A layer knows its arithmetic only. Names, protobuf, files, buffers' lives and how an activation is
// kept between forward and backward belong to others; it meets them through `Needs` and `Traits`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "caffe/core/error.hpp"
#include "caffe/core/tensor.hpp"

namespace caffe {

// How well a value must be known in backward, from not at all to every bit.
enum class Quality : uint8_t { Nothing, Sign, Bounded, BoundedSign, Exact };

// Which rule sets the error bound of a value that may be known within a bound.
enum class BoundRule : uint8_t {
  Gradient,    // the error reaches parameter gradients alone: the formula of docs/error-bounds.md
  Normalised,  // a normalised value that reaches dx: the cap, in std of the value
  Propagated,  // reaches dx otherwise: a third of the cap
};

struct Need {
  Quality quality = Quality::Nothing;
  BoundRule rule = BoundRule::Propagated;
};

// What backward reads of each bottom and top; sized as they are.
struct Needs {
  std::vector<Need> bottoms;
  std::vector<Need> tops;
};

// What is asked of backward: which bottoms want a gradient and which parameters learn.
struct Propagation {
  std::vector<bool> bottoms;
  std::vector<bool> parameters;
  bool any() const;
  bool any_parameter() const;
};

enum class BatchAxis : uint8_t {
  Coupled,      // a sample's result depends on others, or axis 0 is not the batch
  Independent,  // each sample by itself: a batch may go slice by slice
};

struct Traits {
  bool cheap = false;              // may be run again in backward instead of saving its top
  bool forward_in_place = false;   // top 0 may be written over bottom 0
  bool backward_in_place = false;  // diff_src 0 may be written over diff_dst 0
  bool alias = false;              // tops are bottom 0's buffer under another shape
  BatchAxis batch_axis = BatchAxis::Coupled;
  size_t differentiable_bottoms = SIZE_MAX;  // bottoms from this index on (labels) take no gradient
  float error_factor =
      1;  // an error of e in bottom 0 is one of at most error_factor * e in the top
};

struct ForwardContext {
  bool train = false;             // phase
  bool save_for_backward = true;  // false: nothing of the layer's own needs to be kept
  uint64_t random_key = 0;        // of this layer in this net
  uint64_t forward_count = 0;     // passes that drew random numbers before this one
};

class Layer {
 public:
  virtual ~Layer() = default;

  // Shapes of the tops for these bottoms. Makes the parameters on the first call (zeros; Python
  // fills them). Throws ConfigError where shapes do not fit.
  virtual std::vector<Shape> reshape(const std::vector<Shape>& bottoms) = 0;

  virtual Needs needs(const Propagation& propagation) const = 0;
  virtual Traits traits() const { return {}; }

  // Writes every value of `dst`, whose shapes are those that reshape() gave.
  virtual void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) = 0;

  struct BackwardArguments {
    const Tensors& src;       // defined where needs() asked for them
    const Tensors& dst;       // likewise; a Sign need may be met by a mask
    const Tensors& diff_dst;  // all defined
    const Tensors& diff_src;  // undefined where no gradient is wanted; written, not added to
    const Propagation& propagation;
  };
  // Also adds to the gradient of each parameter that learns.
  virtual void backward(const BackwardArguments& arguments) = 0;

  // Products summed in one parameter gradient (samples times output positions), for the error model;
  // 0 for a layer whose parameter gradients are no such sums. Valid after reshape().
  virtual int64_t gradient_terms() const { return 0; }
  // Bytes this layer keeps of its own between forward and backward.
  virtual size_t saved_bytes() const { return 0; }
  // Lets go of them: after backward, or when there will be none.
  virtual void drop_saved() {}

  std::vector<std::shared_ptr<Parameter>> parameters;

 protected:
  // One Need of this quality and rule for bottom `index`, Nothing for the rest.
  static Needs no_needs(size_t bottoms, size_t tops);
};

// ConfigError unless `count` is within [least, most].
void check_count(const char* what, size_t count, size_t least, size_t most);

}  // namespace caffe
