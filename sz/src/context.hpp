// The scratch memory behind sz::Context: one Scratch a thread, made on first use.
#pragma once

#include <memory>
#include <vector>

#include "kernels.hpp"
#include "model.hpp"
#include "sz/sz.hpp"

namespace sz {

// More do not pay: a chunk is then lossless.
constexpr size_t most_exceptions(size_t values) {
  return values / 16;
}
constexpr size_t kMaxExceptions = most_exceptions(kMaxChunk);
constexpr int kBlockValues = kLanes * kBlockSteps;

struct Scratch {
  alignas(64) int16_t codes[kMaxChunk + kBlockValues];
  // Both are filled from the end; a value takes at most one word and 20 raw bits.
  alignas(64) uint16_t words[kMaxChunk + kPadding];
  alignas(64) uint8_t raw[kMaxChunk / 2 * 5 + kPadding];
  PairScratch pairs;
  // A block at the end of an array, of float or double.
  alignas(64) double block[kBlockValues];
  uint32_t exception_at[kMaxExceptions];
  double exception_values[kMaxExceptions];
  std::vector<uint8_t> out;  // an encoded chunk, or a copy of one that ends the input
};

struct Context::Impl {
  std::vector<std::unique_ptr<Scratch>> scratch;
  Model model;
  std::vector<Statistics> statistics;  // one a chunk
  std::vector<size_t> offsets;         // of the chunks and their end

  void reserve_threads(int threads) {
    while (scratch.size() < static_cast<size_t>(threads)) {
      scratch.push_back(std::unique_ptr<Scratch>(new Scratch));
    }
  }
};

}  // namespace sz
