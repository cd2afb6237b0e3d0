// What a Scale layer keeps so that its bottom x can be worked out from its top in backward: x itself
// of the weak channels, whose factors are small or 0, where (y - b) / s would make an error in y large.
//
// x of a weak channel is kept in 8 bits, evenly between its least and its largest value. A channel is
// weak if its |s| is below a quarter of the typical factor, the root of the mean square of all.
#pragma once

#include <memory>
#include <vector>

#include "caffe/core/arena.hpp"
#include "caffe/layers/channels.hpp"

namespace caffe {

// Root of the mean of the squares; 1 if that is 0 or no number.
float typical_factor(const float* s, int64_t count);

class WeakChannels {
 public:
  // `first`: where this slice of x begins among the values of a channel.
  void keep(const float* x, const float* s, const ChannelShape& shape, int64_t first);
  // Writes what is kept of a slice's weak channels.
  void restore(float* x, const ChannelShape& shape, int64_t first) const;
  size_t bytes() const { return codes_ ? codes_->bytes() : 0; }

 private:
  struct Channel {
    int64_t index;
    float least, step;
  };
  std::vector<Channel> channels_;
  int64_t first_ = 0;
  int64_t values_ = 0;            // of a channel
  std::shared_ptr<Block> codes_;  // a byte a value
};

}  // namespace caffe
