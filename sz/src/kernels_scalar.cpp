// The reference: every kernel but those of pairs in portable C++.
#include <cmath>
#include <cstring>

#include "kernels.hpp"

namespace sz {
namespace {

#include "lanes.inl"
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
      words = advance_back(entry, &states[lane], words);
    }
  }
  return words;
}

bool decode(Decoding* chunk, const Lattice& lattice, const Lanes& lanes, const uint32_t* slots) {
  if (!starts_well(*chunk)) return false;
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    const Neighbours neighbours = at.neighbours(chunk->codes);
    int16_t* here = chunk->codes + at.step * kLanes;
    const int active = active_lanes(lanes, at.step);
    for (int lane = 0; lane < active; lane++) {
      const Context context = context_of(neighbours, lane);
      uint32_t* state = &chunk->states[lane];
      const uint32_t entry =
          slots[(context.index << kProbabilityBits) + (*state & (kProbabilityOne - 1))];
      if (!advance(entry, state, chunk)) return false;
      const int code =
          code_of(static_cast<int>(entry & kSymbolMask), context.prediction, &chunk->raw);
      here[lane] = static_cast<int16_t>(code);
    }
    for (int lane = active; lane < kLanes; lane++) here[lane] = 0;
  }
  return is_complete(*chunk);
}

constexpr ValueKernels<float> kFloat32 = {quantize<float>, dequantize<float>, accumulate<float>};
constexpr ValueKernels<double> kFloat64 = {quantize<double>, dequantize<double>,
                                           accumulate<double>};
constexpr CoderKernels kCoder = {count, encode, decode};

}  // namespace

const Kernels kScalarKernels = {kFloat32, kFloat64, kCoder, kScalarPairs};

}  // namespace sz
