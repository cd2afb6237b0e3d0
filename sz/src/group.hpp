// A group of kGroupValues values: how its codes become residuals, and what its header byte says.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace sz {

constexpr int kClasses = 4;  // a chunk's groups are coded with up to so many sets of tables

struct GroupHeader {
  Transform transform;
  int shift;
  int group_class;

  uint8_t byte() const { return static_cast<uint8_t>(group_class << 6 | transform << 4 | shift); }
};

// The class of any header byte, sound or not.
inline int class_of(uint8_t byte) {
  return byte >> 6;
}

// False if the transform or the shift is out of range.
inline bool parse_group_header(uint8_t byte, GroupHeader* header) {
  const int transform = byte >> 4 & 3, shift = byte & 15;
  *header = {static_cast<Transform>(transform), shift, class_of(byte)};
  return transform <= kDelta && shift <= kLargestShift;
}

inline int group_count(int count) {
  return (count + kGroupValues - 1) / kGroupValues;
}

inline int group_size(int at, int count) {
  return count - at < kGroupValues ? count - at : kGroupValues;
}

}  // namespace sz
