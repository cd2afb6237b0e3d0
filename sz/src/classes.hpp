// Sorts a chunk's groups into classes of similar statistics, each with tables of its own: the
// channels of an activation differ in scale and in how many of their values are zero.
#pragma once

#include <cstdint>

#include "context.hpp"
#include "group.hpp"
#include "kernels.hpp"

namespace sz {

// One group as the encoder found it.
struct GroupInfo {
  uint32_t level;    // what groups are sorted by: sum of their residuals and codes
  uint16_t symbols;  // non-zero codes
  uint16_t large;    // symbols of 255 and more
};

// The bytes of one class.
struct Histograms {
  uint32_t mask[256];
  uint32_t symbols[256];
};

struct Classes {
  // Where each class begins in buffers ordered by class; [kClasses] is the end.
  uint32_t mask[kClasses + 1];
  uint32_t symbols[kClasses + 1];
  Histograms counts[kClasses];
};

// Chooses the classes of all groups of a chunk of `count` values, and writes them into the headers.
// Then copies the mask, the symbols and the large symbols in scratch, ordered by class, to
// class_mask, class_symbols and class_large.
void classify(const Kernels& kernels, const GroupInfo* groups, int count, Scratch* scratch,
              Classes* classes);

}  // namespace sz
