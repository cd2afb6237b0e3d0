// Loops over tensors seen as [outer, channels, inner], and sums over all but the channels.
//
// Sums are taken in blocks of at most 4096 values, in float with a fixed number of partial sums;
// the blocks are combined in double in a fixed order. Results do not depend on the thread count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "caffe/core/parallel.hpp"
#include "caffe/core/tensor.hpp"

namespace caffe {

struct ChannelShape {
  // Axes [axis, axis + axes) of `shape` are the channels.
  static ChannelShape of(const Shape& shape, size_t axis, size_t axes);

  int64_t outer;
  int64_t channels;
  int64_t inner;

  int64_t count() const { return outer * channels * inner; }
  int64_t per_channel() const { return outer * inner; }
};

// Mean and (biased) variance of each channel; safe where the mean is large against the deviation.
void channel_moments(const float* x, const ChannelShape& shape, float* mean, float* variance);

// sum[c] = sum of a; with `accumulate`, added to what is there.
void channel_sums(const float* a, const ChannelShape& shape, bool accumulate, float* sum);
// sum_ab[c] = sum of a * b.
void channel_products(const float* a, const float* b, const ChannelShape& shape, bool accumulate,
                      float* sum_ab);
// sum[c] = sum of |a|.
void channel_abs_sums(const float* a, const ChannelShape& shape, float* sum);
// sum_ab[c] = sum of a * b over the b that are not above 0.
void channel_products_below(const float* a, const float* b, const ChannelShape& shape,
                            bool accumulate, float* sum_ab);
// channel_sums() and channel_products() in one pass over the memory.
void channel_sums_and_products(const float* a, const float* b, const ChannelShape& shape,
                               float* sum_a, float* sum_ab);

// Sums of a, and of a * b, for each channel of a batch that comes in slices. They are held in double,
// so that the slices leave no trace in them.
class SlicedSums {
 public:
  // As Layer::exact_slice(): blocks of one channel, which is one long run, do not end with samples.
  static int64_t exact_slice(int64_t channels) { return channels == 1 ? INT64_MAX : 0; }

  // Adds a slice; with `restart`, after letting go of what there is. `b` may be null.
  void add(const float* a, const float* b, const ChannelShape& shape, bool restart);

  // Adds the sums of a, or of a * b, to the gradient of a parameter.
  void add_a_to(Parameter& parameter) const { add_to(parameter, 0); }
  void add_ab_to(Parameter& parameter) const { add_to(parameter, channels_); }

  int64_t per_channel() const { return per_channel_; }  // values added up for each channel
  float a(int64_t channel) const { return static_cast<float>(sums_[channel]); }
  float ab(int64_t channel) const { return static_cast<float>(sums_[channels_ + channel]); }

 private:
  void add_to(Parameter& parameter, int64_t first) const;

  int64_t channels_ = 0;
  int64_t per_channel_ = 0;
  std::vector<double> sums_;  // of a for all channels, then of a * b
};

// Calls body(channel, index) for every value. Values must not depend on each other.
template <typename Body>
void for_each_value(const ChannelShape& shape, const Body& body) {
  const int64_t channels = shape.channels;
  const int64_t inner = shape.inner;
  if (inner == 1) {
    const int64_t grain = kParallelGrain / std::max<int64_t>(channels, 1) + 1;
    parallel_for(shape.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) body(c, row * channels + c);
      }
    });
    return;
  }
  const int64_t grain = kParallelGrain / std::max<int64_t>(inner, 1) + 1;
  parallel_for(shape.outer * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t c = plane % channels;
#pragma omp simd
      for (int64_t i = plane * inner; i < (plane + 1) * inner; ++i) body(c, i);
    }
  });
}

}  // namespace caffe
