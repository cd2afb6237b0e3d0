#include "caffe/layers/split.hpp"

#include <algorithm>

#include "caffe/core/parallel.hpp"
#include "caffe/layers/copies.hpp"

namespace caffe {
namespace {

constexpr int64_t kBlock = 1024;  // values that are summed in the L1 cache

}  // namespace

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
  // From the last to the first, as backward meets them. dx may be dy_0.
  float* dx = diff_src.data();
  parallel_for(diff_src.count(), kParallelGrain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block += kBlock) {
      const int64_t length = std::min(kBlock, end - block);
      float sums[kBlock];
      std::copy_n(diff_dst.back().data() + block, length, sums);
      for (size_t k = diff_dst.size() - 1; k-- > 0;) {
        const float* dy = diff_dst[k].data() + block;
#pragma omp simd
        for (int64_t i = 0; i < length; ++i) sums[i] += dy[i];
      }
      std::copy_n(sums, length, dx + block);
    }
  });
}

}  // namespace caffe
