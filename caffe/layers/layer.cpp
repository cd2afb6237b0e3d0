#include "caffe/layers/layer.hpp"

#include <algorithm>

namespace caffe {
namespace {

bool any_of(const std::vector<bool>& flags) {
  return std::any_of(flags.begin(), flags.end(), [](bool flag) { return flag; });
}

}  // namespace

bool Propagation::any() const {
  return any_of(bottoms) || any_of(parameters);
}
bool Propagation::any_parameter() const {
  return any_of(parameters);
}

Needs Layer::no_needs(size_t bottoms, size_t tops) {
  return {std::vector<Need>(bottoms), std::vector<Need>(tops)};
}

void Layer::rerun(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  ForwardContext again = context;
  again.save_for_backward = false;
  forward(src, dst, again);
}

void Layer::invert(const Tensor&, const Tensor&, const BatchSlice&) {
  throw Error("a layer without an inverse was asked for it");
}

void Layer::add_up(const BackwardArguments&) {
  throw Error("a layer that needs no sums was asked for them");
}

void check_count(const char* what, size_t count, size_t least, size_t most) {
  if (least == most) {
    require(count == least, "has ", count, " ", what, ", needs ", least);
  } else {
    require(count >= least && count <= most, "has ", count, " ", what, ", needs ", least, " to ",
            most);
  }
}

}  // namespace caffe
