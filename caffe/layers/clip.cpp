#include "caffe/layers/clip.hpp"

#include "caffe/layers/masks.hpp"

namespace caffe {
ClipLayer::ClipLayer(const ClipOptions& options) : options_(options) {
  require(options.min <= options.max, "min is ", options.min, ", above max, ", options.max);
}

std::vector<Shape> ClipLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  return {bottoms[0]};
}

Needs ClipLayer::needs(const Propagation&) const {
  return no_needs(1, 1);
}

Traits ClipLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  traits.batch_axis = BatchAxis::Independent;
  return traits;
}

void ClipLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  const float* x = src[0].data();
  float* y = dst[0].data();
  const float low = options_.min;
  const float high = options_.max;
  if (context.save_for_backward) {
    inside_ = Tensor::make(src[0].shape(), MemoryKind::StoredActivations, DType::Mask);
    write_mask(src[0].count(), inside_.mask_words(),
               [=](int64_t i) { return (x[i] >= low) & (x[i] <= high); });
  }
  parallel_for(src[0].count(), kParallelGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float raised = x[i] < low ? low : x[i];  // NaN stays
      y[i] = raised > high ? high : raised;
    }
  });
}

void ClipLayer::backward(const BackwardArguments& arguments) {
  if (!arguments.diff_src[0].defined()) return;
  if (!inside_.defined()) throw Error("backward without a forward pass that saved its state");
  pass_masked(inside_.count(), inside_.mask_words(), 0, arguments.diff_dst[0].data(),
              arguments.diff_src[0].data());
}

}  // namespace caffe
