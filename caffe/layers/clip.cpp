#include "caffe/layers/clip.hpp"

#include <algorithm>

#include "caffe/core/parallel.hpp"

namespace caffe {
namespace {

// Calls body(word, first, last) for the words of a mask of `count` values.
template <typename Body>
void for_each_word(int64_t count, const Body& body) {
  parallel_for((count + 63) / 64, kParallelGrain / 64, [&](int64_t begin, int64_t end) {
    for (int64_t word = begin; word < end; ++word) {
      body(word, word * 64, std::min(word * 64 + 64, count));
    }
  });
}

}  // namespace

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
  inside_ = Tensor();
  if (context.save_for_backward) {
    inside_ = Tensor::make(src[0].shape(), MemoryKind::StoredActivations, DType::Mask);
    uint64_t* words = inside_.mask_words();
    for_each_word(src[0].count(), [=](int64_t word, int64_t first, int64_t last) {
      uint64_t bits = 0;
      for (int64_t i = first; i < last; ++i) {
        bits |= uint64_t{x[i] >= low && x[i] <= high} << (i - first);
      }
      words[word] = bits;
    });
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
  const float* dy = arguments.diff_dst[0].data();
  float* dx = arguments.diff_src[0].data();
  const uint64_t* words = inside_.mask_words();
  for_each_word(inside_.count(), [=](int64_t word, int64_t first, int64_t last) {
    const uint64_t bits = words[word];
    for (int64_t i = first; i < last; ++i) dx[i] = (bits >> (i - first) & 1) != 0 ? dy[i] : 0.0f;
  });
}

}  // namespace caffe
