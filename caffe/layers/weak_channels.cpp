#include "caffe/layers/weak_channels.hpp"

#include <cmath>
#include <limits>

namespace caffe {
namespace {

constexpr float kWeak = 0.25f;  // of the typical factor
constexpr float kSteps = 255;

// Calls body(index of the value, index within the channel) for values [begin, end) of a channel.
template <typename Body>
void for_each_of_channel(const ChannelShape& shape, int64_t channel, int64_t begin, int64_t end,
                         const Body& body) {
  for (int64_t at = begin; at < end;) {
    const int64_t n = at / shape.inner;
    const int64_t skipped =
        (n * (shape.channels - 1) + channel) * shape.inner;  // of other channels
    const int64_t stop = std::min(end, (n + 1) * shape.inner);
    for (; at < stop; ++at) body(skipped + at, at);
  }
}

}  // namespace

float typical_factor(const float* s, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += static_cast<double>(s[c]) * s[c];
  const auto typical = static_cast<float>(std::sqrt(sum / static_cast<double>(count)));
  return std::isfinite(typical) && typical > 0 ? typical : 1.0f;
}

void WeakChannels::keep(const float* x, const float* s, const ChannelShape& shape, int64_t first) {
  const float least = kWeak * typical_factor(s, shape.channels);
  channels_.clear();
  codes_.reset();
  for (int64_t c = 0; c < shape.channels; ++c) {
    if (!(std::fabs(s[c]) >= least)) channels_.push_back({c, 0, 0});
  }
  if (channels_.empty()) return;
  const int64_t values = shape.per_channel();
  first_ = first;
  values_ = values;
  codes_ = Arena::instance().allocate(channels_.size() * static_cast<size_t>(values),
                                      MemoryKind::StoredActivations);
  auto* codes = reinterpret_cast<uint8_t*>(codes_->data());
  Channel* const channels = channels_.data();
  const auto count = static_cast<int64_t>(channels_.size());
  parallel_for(count, kParallelGrain / std::max<int64_t>(values, 1) + 1, [&](int64_t a, int64_t b) {
    for (int64_t k = a; k < b; ++k) {
      float low = std::numeric_limits<float>::infinity(), high = -low;
      for_each_of_channel(shape, channels[k].index, 0, values, [&](int64_t i, int64_t) {
        low = std::min(low, x[i]);
        high = std::max(high, x[i]);
      });
      const float step = (high - low) / kSteps;
      channels[k].least = low;
      channels[k].step = step;
      uint8_t* to = codes + k * values;
      for_each_of_channel(shape, channels[k].index, 0, values, [&](int64_t i, int64_t at) {
        const float code = (x[i] - low) / step + 0.5f;
        to[at] = code > 0 && code < kSteps + 1 ? static_cast<uint8_t>(code) : 0;  // 0 for NaN too
      });
    }
  });
}

void WeakChannels::restore(float* x, const ChannelShape& shape, int64_t first) const {
  // Those of both, counted from the slice's first.
  const int64_t begin = std::max<int64_t>(first_ - first, 0);
  const int64_t end = std::min(first_ + values_ - first, shape.per_channel());
  if (channels_.empty() || begin >= end) return;
  const auto* codes = reinterpret_cast<const uint8_t*>(codes_->data());
  const Channel* const channels = channels_.data();
  const auto count = static_cast<int64_t>(channels_.size());
  const int64_t grain = kParallelGrain / (end - begin) + 1;
  parallel_for(count, grain, [&](int64_t a, int64_t b) {
    for (int64_t k = a; k < b; ++k) {
      const Channel channel = channels[k];
      const uint8_t* from = codes + k * values_ + (first - first_);
      for_each_of_channel(shape, channel.index, begin, end, [&](int64_t i, int64_t at) {
        x[i] = channel.least + static_cast<float>(from[at]) * channel.step;
      });
    }
  });
}

}  // namespace caffe
