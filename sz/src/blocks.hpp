// Walks through lanes in blocks of kBlockSteps steps, the unit of quantising and restoring.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "context.hpp"
#include "kernels.hpp"

namespace sz {

template <typename T>
const ValueKernels<T>& kernels_of(const Kernels& kernels);
template <>
inline const ValueKernels<float>& kernels_of<float>(const Kernels& kernels) {
  return kernels.float32;
}
template <>
inline const ValueKernels<double>& kernels_of<double>(const Kernels& kernels) {
  return kernels.float64;
}

// Lanes of `steps` steps that begin `stride` values apart in an array of `count` values. Blocks that
// reach past their lanes or the array go through a buffer.
struct Blocks {
  uint64_t count;
  uint64_t stride;
  int steps;
  uint64_t first;  // index of the array's first value, which keys the dither

  bool inside(int step) const {
    const uint64_t last = (kLanes - 1) * stride + static_cast<uint64_t>(step) + kBlockSteps;
    return step + kBlockSteps <= steps && last <= count;
  }
  // How many values of a lane's part of a block there are.
  size_t length(int lane, int step) const {
    const uint64_t begin = static_cast<uint64_t>(lane) * stride + static_cast<uint64_t>(step);
    if (begin >= count) return 0;
    const auto most = static_cast<uint64_t>(std::min(kBlockSteps, steps - step));
    return static_cast<size_t>(std::min(most, count - begin));
  }
  template <typename V>
  Block<V> direct(V* values, int step) const {
    return {values + step, static_cast<int64_t>(stride), pair(step), static_cast<uint32_t>(stride)};
  }
  template <typename V>
  Block<V> buffered(V* buffer, int step) const {
    return {buffer, kBlockSteps, pair(step), static_cast<uint32_t>(stride)};
  }

 private:
  uint32_t pair(int step) const {
    return static_cast<uint32_t>(first) + static_cast<uint32_t>(step / 2);
  }
};

template <typename T>
void gather(const Blocks& blocks, const T* src, int step, T* buffer) {
  std::memset(buffer, 0, kBlockValues * sizeof(T));
  for (int lane = 0; lane < kLanes; lane++) {
    const size_t length = blocks.length(lane, step);
    if (length == 0) break;
    const T* from = src + static_cast<uint64_t>(lane) * blocks.stride + step;
    std::memcpy(buffer + lane * kBlockSteps, from, length * sizeof(T));
  }
}

template <typename T>
void scatter(const Blocks& blocks, const T* buffer, int step, T* dst) {
  for (int lane = 0; lane < kLanes; lane++) {
    const size_t length = blocks.length(lane, step);
    if (length == 0) break;
    T* to = dst + static_cast<uint64_t>(lane) * blocks.stride + step;
    std::memcpy(to, buffer + lane * kBlockSteps, length * sizeof(T));
  }
}

// The block at `step`: in the array if it is inside, else copied to the buffer, with zeros around.
template <typename T>
Block<const T> load_block(const Blocks& blocks, const T* src, int step, T* buffer) {
  if (blocks.inside(step)) return blocks.direct(src, step);
  gather(blocks, src, step, buffer);
  return blocks.buffered(static_cast<const T*>(buffer), step);
}

}  // namespace sz
