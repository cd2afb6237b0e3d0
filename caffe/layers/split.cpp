#include "caffe/layers/split.hpp"

#include "caffe/core/parallel.hpp"
#include "caffe/layers/copies.hpp"

namespace caffe {

SplitLayer::SplitLayer(const SplitOptions& options) : options_(options) {
  require(options.tops >= 1, "has no tops, needs at least 1");
}

std::vector<Shape> SplitLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  return std::vector<Shape>(options_.tops, bottoms[0]);
}

Needs SplitLayer::needs(const Propagation&) const {
  return no_needs(1, options_.tops);
}

Traits SplitLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.keeps_sign = true;
  traits.backward_in_place = true;
  traits.alias = true;
  traits.batch_axis = BatchAxis::Independent;
  traits.slices = true;
  return traits;
}

void SplitLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  for (const Tensor& top : dst) copy_unless_shared(src[0], top);
}

void SplitLayer::backward(const BackwardArguments& arguments) {
  const Tensor& diff_src = arguments.diff_src[0];
  if (!diff_src.defined()) return;
  const Tensors& diff_dst = arguments.diff_dst;
  if (diff_dst.size() == 1) {
    copy_unless_shared(diff_dst[0], diff_src);
    return;
  }
  // dx may be dy_0, so that is read in the first pass, before anything of it is overwritten.
  const float* first = diff_dst[0].data();
  float* dx = diff_src.data();
  for (size_t k = 1; k < diff_dst.size(); ++k) {
    const float* sum = k == 1 ? first : dx;
    const float* dy = diff_dst[k].data();
    parallel_for(diff_src.count(), kParallelGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) dx[i] = sum[i] + dy[i];
    });
  }
}

}  // namespace caffe
