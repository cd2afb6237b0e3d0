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

// What a layer's invert() makes of its top 0 in backward.
enum class Inverse : uint8_t {
  None,
  Value,     // bottom 0 within a bound, from the top within a bound
  Selected,  // the signs of bottom 0 wherever a gradient comes through: the layer selects values
};

struct Traits {
  bool cheap = false;  // rerun() gives the tops again in backward, as an alternative to saving them
  bool keeps_sign = false;  // the signs of the tops follow from those of the bottoms
  bool rectifies = false;   // top = max(bottom, 0)
  Inverse inverse = Inverse::None;
  bool forward_in_place = false;   // top 0 may be written over bottom 0
  bool backward_in_place = false;  // diff_src 0 may be written over diff_dst 0
  bool alias = false;              // tops are bottom 0's buffer under another shape
  BatchAxis batch_axis = BatchAxis::Coupled;
  bool slices = false;      // takes slices of the batch without reshape(); only where Independent
  bool any_slices = false;  // what it kept of the batch, or of slices, serves any other slices too
  bool sums_first = false;  // backward takes slices once all of them went through add_up()
  size_t differentiable_bottoms = SIZE_MAX;  // bottoms from this index on (labels) take no gradient
  float error_factor =
      1;  // errors of e in the bottoms are one of at most error_factor * e in a top
  float inverse_error_factor = 1;  // an error of e in the top is one of that times e in what
                                   // invert() gives; of Scale in the typical channel
};

// Which part of the batch a layer works on, where the batch goes slice by slice.
struct BatchSlice {
  size_t index = 0;   // what the layer keeps for backward is told apart by it
  int64_t first = 0;  // sample of the batch
  bool last = true;   // no slices follow

  bool whole() const { return index == 0 && last; }
};

struct ForwardContext {
  bool train = false;             // phase
  bool save_for_backward = true;  // false: nothing of the layer's own needs to be kept
  uint64_t random_key = 0;        // of this layer in this net
  uint64_t forward_count = 0;     // passes that drew random numbers before this one
  bool inverts = false;           // backward will ask for invert()
  BatchSlice slice = {};
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

  // For backward, of a cheap layer: writes dst as the last forward pass of this slice did, from src
  // as it was then or near it, and changes nothing else. May write over src where forward may.
  virtual void rerun(const Tensors& src, const Tensors& dst, const ForwardContext& context);
  // For backward, of a layer that has an inverse: bottom 0 from top 0, over which one of
  // Inverse::Value may write.
  virtual void invert(const Tensor& dst, const Tensor& src, const BatchSlice& slice);

  struct BackwardArguments {
    const Tensors& src;       // defined where needs() asked for them
    const Tensors& dst;       // likewise; a Sign need may be met by a mask
    const Tensors& diff_dst;  // all defined
    const Tensors& diff_src;  // undefined where no gradient is wanted; written, not added to
    const Propagation& propagation;
    BatchSlice slice = {};
  };
  // Also adds to the gradient of each parameter that learns.
  virtual void backward(const BackwardArguments& arguments) = 0;
  // With sums_first: takes note of a slice, from the first to the last, before any goes backward.
  // diff_src is not defined.
  virtual void add_up(const BackwardArguments& arguments);

  // Products summed in one parameter gradient (samples times output positions), for the error model;
  // 0 for a layer whose parameter gradients are no such sums. Valid after reshape().
  virtual int64_t gradient_terms() const { return 0; }
  // Samples of the slices in which backward gives the bits that it gives on the whole batch; 0: any
  // will do. By default only the whole does where parameters' gradients are sums over the batch.
  virtual int64_t exact_slice() const { return parameters.empty() ? 0 : INT64_MAX; }
  // Bytes this layer keeps of its own between forward and backward.
  virtual size_t saved_bytes() const { return 0; }
  // Lets go of them: after backward, or when there will be none.
  virtual void drop_saved() {}

  std::vector<std::shared_ptr<Parameter>> parameters;

 protected:
  // One Need of this quality and rule for bottom `index`, Nothing for the rest.
  static Needs no_needs(size_t bottoms, size_t tops);
};

// What a layer keeps of each slice of the batch between forward and backward.
template <typename Kept>
class PerSlice {
 public:
  Kept& operator[](const BatchSlice& slice) {
    if (kept_.size() <= slice.index) kept_.resize(slice.index + 1);
    return kept_[slice.index];
  }
  const std::vector<Kept>& all() const { return kept_; }
  void clear() { kept_.clear(); }

 private:
  std::vector<Kept> kept_;
};

// ConfigError unless `count` is within [least, most].
void check_count(const char* what, size_t count, size_t least, size_t most);

}  // namespace caffe
