// The reference: every kernel in portable C++.
#include <cmath>
#include <cstring>

#include "kernels.hpp"

namespace sz {
namespace {

#include "model.inl"
#include "portable_values.inl"

void count(const int16_t* codes, const Lattice& lattice, const Lanes& lanes, uint32_t* counts) {
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    const Neighbours neighbours = at.neighbours(codes);
    for (int lane = 0; lane < active_lanes(lanes, at.step); lane++) {
      const Context context = context_of(neighbours, lane);
      const Symbol symbol = symbol_of(codes[at.step * kLanes + lane], context.prediction);
      counts[context.index * kAlphabet + symbol.index]++;
    }
  }
}

uint16_t* encode(const int16_t* codes, const Lattice& lattice, const Lanes& lanes,
                 const uint32_t* symbols, uint32_t* states, uint16_t* words_end, RawWriter* raw) {
  uint16_t* words = words_end;
  for (Walker at = Walker::at_end(lattice); at.step >= 0; at.previous()) {
    const Neighbours neighbours = at.neighbours(codes);
    for (int lane = active_lanes(lanes, at.step) - 1; lane >= 0; lane--) {
      const Context context = context_of(neighbours, lane);
      const uint32_t entry = entry_of(codes[at.step * kLanes + lane], context, symbols, raw);
      const uint32_t frequency = entry & 0xffff, start = entry >> 16;
      uint32_t x = states[lane];
      if (x >= frequency << (31 - kProbabilityBits)) {
        *--words = static_cast<uint16_t>(x);
        x >>= 16;
      }
      states[lane] = (x / frequency << kProbabilityBits) + x % frequency + start;
    }
  }
  return words;
}

bool decode(int16_t* codes, const Lattice& lattice, const Lanes& lanes, const uint32_t* slots,
            uint32_t* states, const uint8_t* words, const uint8_t* words_end, RawReader* raw) {
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    const Neighbours neighbours = at.neighbours(codes);
    const int active = active_lanes(lanes, at.step);
    for (int lane = 0; lane < active; lane++) {
      const Context context = context_of(neighbours, lane);
      uint32_t x = states[lane];
      const uint32_t entry =
          slots[(context.index << kProbabilityBits) + (x & (kProbabilityOne - 1))];
      x = (entry >> 6 & 0x7ff) * (x >> kProbabilityBits) + (entry >> 17);
      if (x < kLeastState) {
        if (words == words_end) return false;
        uint16_t word;
        std::memcpy(&word, words, 2);
        words += 2;
        x = x << 16 | word;
      }
      states[lane] = x;
      codes[at.step * kLanes + lane] =
          static_cast<int16_t>(code_of(static_cast<int>(entry & 63), context.prediction, raw));
    }
    for (int lane = active; lane < kLanes; lane++) codes[at.step * kLanes + lane] = 0;
  }
  return words == words_end && raw->position == raw->end && all_at_start(states);
}

constexpr ValueKernels<float> kFloat32 = {quantize<float>, dequantize<float>, accumulate<float>};
constexpr ValueKernels<double> kFloat64 = {quantize<double>, dequantize<double>,
                                           accumulate<double>};
constexpr CoderKernels kCoder = {count, encode, decode};

}  // namespace

const Kernels kScalarKernels = {kFloat32, kFloat64, kCoder};

}  // namespace sz
