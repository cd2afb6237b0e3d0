#include "caffe/layers/dropout.hpp"

#include <algorithm>

#include "caffe/core/parallel.hpp"
#include "caffe/core/random.hpp"
#include "caffe/core/simd.hpp"
#include "caffe/layers/copies.hpp"

namespace caffe {
namespace {

constexpr int64_t kGroups = 64;  // of four numbers, drawn side by side: random_group() of each
// Values done at a time: up to three numbers in front belong to values before them.
constexpr int64_t kValues = 4 * (kGroups - 1);

// out[i] = in[i] * scale where the number drawn for element first + i is `threshold` or more, else 0.
CAFFE_WIDE
void drop_values(const float* in, float* out, int64_t count, int64_t first,
                 const ForwardContext& context, uint32_t threshold, float scale) {
  const PhiloxBlock start = random_counter(context.forward_count, 0);
  const int64_t skip = first % 4;
  for (int64_t begin = 0; begin < count; begin += kValues) {
    uint32_t lanes[4][kGroups];
    const uint64_t group = static_cast<uint64_t>(first + begin) / 4;
    for (int64_t j = 0; j < kGroups; ++j) {
      lanes[0][j] = static_cast<uint32_t>(group + static_cast<uint64_t>(j));
      lanes[1][j] = static_cast<uint32_t>((group + static_cast<uint64_t>(j)) >> 32);
      lanes[2][j] = start[2];
      lanes[3][j] = start[3];
    }
    for_each_philox_round(context.random_key, [&](uint32_t key0, uint32_t key1) {
#pragma omp simd
      for (int64_t j = 0; j < kGroups; ++j) {
        philox_round(lanes[0][j], lanes[1][j], lanes[2][j], lanes[3][j], key0, key1);
      }
    });
    uint32_t numbers[4 * kGroups];
    for (int64_t j = 0; j < kGroups; ++j) {
      for (int64_t k = 0; k < 4; ++k) numbers[4 * j + k] = lanes[k][j];
    }
    const int64_t length = std::min(kValues, count - begin);
#pragma omp simd
    for (int64_t i = 0; i < length; ++i) {
      const float kept = in[begin + i] * scale;
      out[begin + i] = numbers[skip + i] >= threshold ? kept : 0.0f;
    }
  }
}

}  // namespace

DropoutLayer::DropoutLayer(const DropoutOptions& options) : options_(options) {
  require(options.ratio >= 0 && options.ratio < 1, "dropout_ratio is ", options.ratio,
          ", needs to be between 0 and 1, 1 excluded");
}

std::vector<Shape> DropoutLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  return {bottoms[0]};
}

Needs DropoutLayer::needs(const Propagation&) const {
  return no_needs(1, 1);
}

Traits DropoutLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.keeps_sign = true;
  traits.inverse = Inverse::Selected;
  traits.slices = true;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  traits.batch_axis = BatchAxis::Independent;
  traits.error_factor = 1 / (1 - options_.ratio);
  return traits;
}

void DropoutLayer::drop(const Tensor& from, const Tensor& to, const ForwardContext& context) const {
  if (!context.train) {
    copy_unless_shared(from, to);
    return;
  }
  const double range = 4294967296.0;  // 2^32: numbers are below it
  const auto threshold = static_cast<uint32_t>(static_cast<double>(options_.ratio) * range);
  const float scale = 1 / (1 - options_.ratio);
  const float* in = from.data();
  float* out = to.data();
  const int64_t count = from.count();
  const int64_t blocks = (count + kValues - 1) / kValues;
  const int64_t earlier = from.axes() == 0 ? 0 : context.slice.first * from.count(1, from.axes());
  parallel_for(blocks, kParallelGrain / kValues, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kValues;
    const int64_t length = std::min(end * kValues, count) - first;
    drop_values(in + first, out + first, length, earlier + first, context, threshold, scale);
  });
}

void DropoutLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  if (context.save_for_backward) last_[context.slice] = context;
  drop(src[0], dst[0], context);
}

void DropoutLayer::invert(const Tensor& dst, const Tensor& src, const BatchSlice&) {
  copy_unless_shared(dst, src);
}

void DropoutLayer::backward(const BackwardArguments& arguments) {
  if (arguments.diff_src[0].defined()) {
    drop(arguments.diff_dst[0], arguments.diff_src[0], last_[arguments.slice]);
  }
}

}  // namespace caffe
