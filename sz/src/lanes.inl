// Lanes and raw bits in portable C++. Included by each kernel file inside its own anonymous namespace,
// so that each is built with that file's instructions. Needs <cstring> and kernels.hpp.

int active_lanes(const Lanes& lanes, int step) {
  return lanes.full + (step < lanes.partial ? 1 : 0);
}

void put_raw(RawWriter* raw, uint32_t value, int count) {
  raw->bits = raw->bits << count | value;
  raw->fill += count;
  if (raw->fill < 32) return;
  raw->fill -= 32;
  const auto word = static_cast<uint32_t>(raw->bits >> raw->fill);
  raw->at -= 4;
  std::memcpy(raw->at, &word, 4);
}

// `count` is at most 16. Past the end it gives zeros, and the position tells.
uint32_t get_raw(RawReader* raw, int count) {
  const uint64_t at = raw->position;
  raw->position += static_cast<uint64_t>(count);
  if (raw->position > raw->end) return 0;
  uint32_t word;
  std::memcpy(&word, raw->begin + (at >> 3), 4);
  return word >> (at & 7) & ((1u << count) - 1);
}

// The entry of a slot moves a lane's state on; false if the words are used up.
inline bool advance(uint32_t entry, uint32_t* state, Decoding* chunk) {
  uint32_t x =
      (entry >> kSymbolBits & kFrequencyMask) * (*state >> kProbabilityBits) + (entry >> kOffsetAt);
  if (x < kLeastState) {
    if (chunk->words == chunk->words_end) return false;
    uint16_t word;
    std::memcpy(&word, chunk->words, 2);
    chunk->words += 2;
    x = x << 16 | word;
  }
  *state = x;
  return true;
}

// The other way: a state too large for its symbol gives up a word first.
inline uint16_t* advance_back(uint32_t entry, uint32_t* state, uint16_t* words) {
  const uint32_t frequency = entry & kFrequencyMask, start = entry >> 16;
  uint32_t x = *state;
  if (x >= frequency << (31 - kProbabilityBits)) {
    *--words = static_cast<uint16_t>(x);
    x >>= 16;
  }
  *state = (x / frequency << kProbabilityBits) + x % frequency + start;
  return words;
}

// No encoder makes states from 2^31 on.
inline bool starts_well(const Decoding& chunk) {
  uint32_t bits = 0;
  for (const uint32_t state : chunk.states) bits |= state;
  return bits >> 31 == 0;
}

// Decoding ends where encoding began.
inline bool is_complete(const Decoding& chunk) {
  for (int lane = 0; lane < kLanes; lane++) {
    if (chunk.states[lane] != kLeastState) return false;
  }
  return chunk.words == chunk.words_end && chunk.raw.position == chunk.raw.end;
}
