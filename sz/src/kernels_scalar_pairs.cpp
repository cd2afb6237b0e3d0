// The reference of pairs: portable C++.
#include <cstring>

#include "kernels.hpp"

namespace sz {
namespace {

#include "lanes.inl"
#include "pairs.inl"

int class_at(const int16_t* codes, const Classes& classes, int step, int lane) {
  return step < 0 ? 0 : class_of(codes[step * kLanes + lane], classes.least);
}

int context_at(const int16_t* codes, const PairLattice& lattice, const Classes& classes, int step,
               int lane) {
  const int up = step - lattice.distance;
  const int left = class_at(codes, classes, step - 1, lane);
  if (step % lattice.plane < lattice.distance) return classes.level[left] * (kPairLevels + 1);
  const int above = class_at(codes, classes, up, lane);
  const int corner = class_at(codes, classes, up - 1, lane);
  const int right = class_at(codes, classes, up + 1, lane);
  const int least = left < above ? left : above, most = left < above ? above : left;
  const int predicted = left + above - (corner < least ? least : corner > most ? most : corner);
  return classes.level[predicted] * kPairLevels + classes.level[right];
}

void index(const int16_t* codes, const PairLattice& lattice, const Classes& classes,
           PairScratch* scratch) {
  for (int step = 0; step < lattice.steps; step += 2) {
    for (int lane = 0; lane < kLanes; lane++) {
      const int16_t* here = codes + step * kLanes + lane;
      const int symbol = class_of(here[0], classes.least) | class_of(here[kLanes], classes.least)
                                                                << 4;
      scratch->indices[step / 2 * kLanes + lane] = static_cast<uint16_t>(
          context_at(codes, lattice, classes, step, lane) * kPairAlphabet + symbol);
    }
  }
}

uint16_t* encode(const int16_t* codes, const PairLattice& lattice, const Lanes& lanes,
                 const uint32_t* symbols, const Classes& classes, PairScratch*, uint32_t* states,
                 uint16_t* words, RawWriter* raw) {
  for (int step = (lattice.steps - 1) / 2 * 2; step >= 0; step -= 2) {
    for (int lane = active_lanes(lanes, step) - 1; lane >= 0; lane--) {
      const int first = codes[step * kLanes + lane];
      const int second = second_code(codes, lattice, lanes, step, lane);
      const uint32_t entry =
          symbols[context_at(codes, lattice, classes, step, lane) * kPairAlphabet +
                  (class_of(first, classes.least) | class_of(second, classes.least) << 4)];
      if ((entry & kEscapedPair) != 0) put_escaped(raw, first, second, classes.least);
      words = advance_back(entry, &states[lane], words);
    }
  }
  return words;
}

bool decode(Decoding* chunk, const PairLattice& lattice, const Lanes& lanes, const uint32_t* slots,
            const Classes& classes, PairScratch*) {
  if (!starts_well(*chunk)) return false;
  for (int step = 0; step < lattice.steps; step += 2) {
    int16_t* here = chunk->codes + step * kLanes;
    for (int lane = 0; lane < kLanes; lane++) here[lane] = here[lane + kLanes] = 0;
    for (int lane = 0; lane < active_lanes(lanes, step); lane++) {
      const int context = context_at(chunk->codes, lattice, classes, step, lane);
      uint32_t* state = &chunk->states[lane];
      const uint32_t entry =
          slots[(context << kProbabilityBits) + (*state & (kProbabilityOne - 1))];
      if (!advance(entry, state, chunk)) return false;
      const int symbol = static_cast<int>(entry & kPairEscape);
      int pair[2] = {classes.least + (symbol & 15), classes.least + (symbol >> 4)};
      if (symbol == kPairEscape) get_escaped(&chunk->raw, classes.least, pair);
      here[lane] = static_cast<int16_t>(pair[0]);
      here[lane + kLanes] = static_cast<int16_t>(pair[1]);
    }
  }
  return is_complete(*chunk);
}

}  // namespace

const PairKernels kScalarPairs = {index, encode, decode};

}  // namespace sz
