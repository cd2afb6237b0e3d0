#include "caffe/layers/slice.hpp"

#include "caffe/layers/copies.hpp"

namespace caffe {

std::vector<int64_t> SliceLayer::ends(int64_t length) const {
  const auto tops = static_cast<int64_t>(options_.tops);
  std::vector<int64_t> ends(options_.points.begin(), options_.points.end());
  if (ends.empty()) {
    require(length % tops == 0, "axis ", options_.axis, " has ", length,
            " entries, which do not divide into ", tops, " tops; give slice_point");
    for (int64_t k = 1; k < tops; ++k) ends.push_back(k * (length / tops));
  }
  require(ends.size() + 1 == options_.tops, "has ", ends.size(), " values of slice_point, needs ",
          tops - 1, " for ", tops, " tops");
  ends.push_back(length);
  int64_t before = 0;
  for (size_t k = 0; k < ends.size(); ++k) {
    // Equal parts of nothing are nothing; a cut must leave something on both sides.
    require(ends[k] > before || length == 0, "slice_point: the part for top ", k, " goes from ",
            before, " to ", ends[k], " of ", length, "; points need to rise, and to lie inside");
    before = ends[k];
  }
  return ends;
}

std::vector<Shape> SliceLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  require(options_.tops > 0, "has no tops, needs at least 1");
  axis_ = canonical_axis(options_.axis, bottoms[0].size());
  std::vector<Shape> tops;
  int64_t before = 0;
  for (const int64_t end : ends(bottoms[0][axis_])) {
    tops.push_back(bottoms[0]);
    tops.back()[axis_] = end - before;
    before = end;
  }
  return tops;
}

Needs SliceLayer::needs(const Propagation&) const {
  return no_needs(1, options_.tops);
}

Traits SliceLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.keeps_sign = true;
  traits.batch_axis = axis_ == 0 ? BatchAxis::Coupled : BatchAxis::Independent;
  return traits;
}

void SliceLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  const int64_t stride = src[0].count(axis_, src[0].axes());
  const float* from = src[0].data();
  for (const Tensor& to : dst) {
    const int64_t length = to.count(axis_, to.axes());
    copy_rows(from, stride, to.data(), length, to.count(0, axis_), length);
    from += length;
  }
}

void SliceLayer::backward(const BackwardArguments& arguments) {
  const Tensor& dx = arguments.diff_src[0];
  if (!dx.defined()) return;
  const int64_t stride = dx.count(axis_, dx.axes());
  float* to = dx.data();
  for (const Tensor& from : arguments.diff_dst) {
    const int64_t length = from.count(axis_, from.axes());
    copy_rows(from.data(), length, to, stride, from.count(0, axis_), length);
    to += length;
  }
}

}  // namespace caffe
