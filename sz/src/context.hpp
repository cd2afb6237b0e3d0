// The scratch memory behind sz::Context: one Scratch a thread, made on first use.
#pragma once

#include <memory>
#include <vector>

#include "kernels.hpp"
#include "sz/sz.hpp"

namespace sz {

constexpr int kGroupMask = kGroupValues / 8;  // bytes
constexpr int kRawChunkBytes = kChunkValues * 4;
constexpr int kMaxExceptions = kChunkValues / 16;  // in a quantised chunk; more do not pay
constexpr int kMaxPatches = kChunkValues / 16;
constexpr int kLowBytes = kChunkValues / 8 * kLargestShift + kChunkGroups;

struct Scratch {
  alignas(64) uint8_t headers[kChunkGroups + kPadding];
  alignas(64) uint8_t mask[kChunkValues / 8 + kPadding];
  alignas(64) uint8_t symbols[kChunkValues + kPadding];
  // Masks and symbols, ordered by class (classes.hpp).
  alignas(64) uint8_t class_mask[kChunkValues / 8 + kPadding];
  alignas(64) uint8_t class_symbols[kChunkValues + kPadding];
  // Symbols packed in two ways, to take the smaller; or one byte plane.
  alignas(64) uint8_t packed[2][kChunkValues + kPadding];
  alignas(64) uint8_t low[kLowBytes + kPadding];
  alignas(64) uint32_t words[kChunkValues + kPadding];

  // One group. codes[kFirstCode - 1] is the code before.
  static constexpr int kFirstCode = 32;
  alignas(64) int16_t codes[kFirstCode + kGroupValues + kPadding];
  alignas(64) uint16_t residuals[kGroupValues + kPadding];
  alignas(64) float values[kGroupValues];

  uint16_t exception_at[kMaxExceptions];
  uint32_t exception_bits[kMaxExceptions];
  uint16_t large_symbols[kMaxPatches];  // of 255 and more
  uint16_t class_large[kMaxPatches];    // the same, ordered by class
  uint16_t patch_at[kMaxPatches];
  uint16_t patch_value[kMaxPatches];

  // An encoded chunk, of any mode, before the smallest is chosen.
  alignas(64) uint8_t out[kRawChunkBytes + kRawChunkBytes / 4 + kPadding];
};

struct Context::Impl {
  std::vector<std::unique_ptr<Scratch>> scratch;
  std::vector<LaneSums> sums;   // one a chunk
  std::vector<size_t> offsets;  // of the chunks and their end

  void reserve_threads(int threads) {
    while (scratch.size() < static_cast<size_t>(threads)) {
      scratch.push_back(std::unique_ptr<Scratch>(new Scratch));
    }
  }
};

}  // namespace sz
