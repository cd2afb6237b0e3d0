// Pairs of codes with AVX2: contexts of 32 lanes a vector, a byte each, and the entropy coder.
#include <cstring>

#include "kernels.hpp"

#ifdef SZ_HAS_WIDE_KERNELS

#include <immintrin.h>

namespace sz {
namespace {

#include "avx2.inl"
#include "lanes.inl"
#include "pairs.inl"
#include "pairs_bytes.inl"
#include "rans_avx2.inl"

template <bool kAll>
SZ_INLINE uint16_t* encode_step(const int16_t* codes, const PairLattice& lattice,
                                const Lanes& lanes, const uint32_t* symbols, int least, int step,
                                const uint16_t* index, __m256i* state, uint16_t* words,
                                RawWriter* raw) {
  __m256i entries[kVectors];
  for (int v = 0; v < kVectors; v++) entries[v] = look_up(symbols, index + 8 * v);
  const __m256i any = _mm256_or_si256(_mm256_or_si256(entries[0], entries[1]),
                                      _mm256_or_si256(entries[2], entries[3]));
  const int active = kAll ? kLanes : active_lanes(lanes, step);
  if (_mm256_testz_si256(any, _mm256_set1_epi32(kEscapedPair)) == 0) {
    uint32_t flagged = 0;
    for (int v = 0; v < kVectors; v++) {
      const __m256i flags = _mm256_slli_epi32(entries[v], 16);
      flagged |= static_cast<uint32_t>(_mm256_movemask_ps(as_floats(flags))) << (8 * v);
    }
    put_escapes(codes, lattice, lanes, step, flagged & active_bits(active), least, raw);
  }
  for (int v = kVectors - 1; v >= 0; v--) {
    words = encode_vector<kAll>(entries[v], active, v, &state[v], words);
  }
  return words;
}

uint16_t* encode_pairs(const int16_t* codes, const PairLattice& lattice, const Lanes& lanes,
                       const uint32_t* symbols, const Classes& classes, PairScratch* scratch,
                       uint32_t* states, uint16_t* words, RawWriter* raw) {
  index_pairs(codes, lattice, classes, scratch);
  __m256i state[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load256(states + 8 * v);
  for (int step = (lattice.steps - 1) / 2 * 2; step >= 0; step -= 2) {
    uint16_t* index = scratch->indices + step / 2 * kLanes;
    if (lanes.full == kLanes && step + 1 < lattice.steps) {
      words = encode_step<true>(codes, lattice, lanes, symbols, classes.least, step, index, state,
                                words, raw);
    } else {
      end_lanes(codes, lattice, lanes, classes.least, step, index);
      words = encode_step<false>(codes, lattice, lanes, symbols, classes.least, step, index, state,
                                 words, raw);
    }
  }
  for (int v = 0; v < kVectors; v++) store256(states + 8 * v, state[v]);
  return words;
}

SZ_INLINE void store_codes(int16_t* codes, __m256i bytes) {
  store256(codes, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(bytes)));
  store256(codes + 16, _mm256_cvtepi8_epi16(_mm256_extracti128_si256(bytes, 1)));
}

// Where packing four vectors of states leaves a lane: four lanes of each vector in the low half, four
// in the high one.
int packed_place(int lane) {
  return (lane & 4) * 4 + lane / 8 * 4 + lane % 4;
}

template <bool kAll>
SZ_INLINE bool decode_steps(Decoding* chunk, const PairLattice& lattice, const Lanes& lanes,
                            const uint32_t* slots, const Classes& classes, PairScratch* scratch) {
  __m256i state[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load256(chunk->states + 8 * v);
  uint8_t* at = scratch->classes + kLanes;
  const ptrdiff_t row = static_cast<ptrdiff_t>(lattice.distance) * kLanes;
  PlaneWalker plane = {lattice, 0};
  const __m256i least = _mm256_set1_epi8(static_cast<char>(classes.least));
  const __m256i predicted_level = level_table(classes, 4 * kPairLevels);
  const __m256i right_level = level_table(classes, 4);
  const __m256i nibble = _mm256_set1_epi8(15);
  // Classes are kept in the order that packing gives. There each lane takes its byte as
  // 4 * context << 8.
  const __m256i lane_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i spread = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(-1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1));
  __m256i left = _mm256_setzero_si256();
  store256(scratch->classes, left);
  int16_t* here = chunk->codes;
  const uint8_t* words = chunk->words;
  const uint8_t* const words_end = chunk->words_end;
  for (int step = 0; step < lattice.steps; step += 2, plane.next()) {
    const int active = kAll ? kLanes : active_lanes(lanes, step);
    const __m256i contexts =
        pair_contexts(left, plane.on_top() ? nullptr : at - row, predicted_level, right_level);
    __m256i symbols[kVectors];
    for (int v = 0; v < kVectors; v++) {
      // Indices beyond 127 would be read as "none": -1 + 4 v keeps its top bit for v < 4.
      const __m256i context =
          _mm256_shuffle_epi8(contexts, _mm256_add_epi8(spread, _mm256_set1_epi32(v << 10)));
      const __m256i entry = decode_vector<kAll>(slots, context, active, v, &state[v], &words);
      symbols[v] = _mm256_and_si256(entry, _mm256_set1_epi32(kSymbolMask));
    }
    const __m256i symbol = _mm256_packus_epi16(_mm256_packus_epi32(symbols[0], symbols[1]),
                                               _mm256_packus_epi32(symbols[2], symbols[3]));
    const __m256i first = _mm256_and_si256(symbol, nibble);
    const __m256i second = _mm256_and_si256(_mm256_srli_epi16(symbol, 4), nibble);
    left = second;
    store256(at, first);
    store256(at + kLanes, second);
    store_codes(here, _mm256_add_epi8(_mm256_permutevar8x32_epi32(first, lane_order), least));
    store_codes(here + kLanes,
                _mm256_add_epi8(_mm256_permutevar8x32_epi32(second, lane_order), least));
    const __m256i is_escape = _mm256_cmpeq_epi8(symbol, _mm256_set1_epi8(-1));
    auto escaped = static_cast<uint32_t>(_mm256_movemask_epi8(is_escape));
    if (escaped != 0) {
      escaped = static_cast<uint32_t>(
          _mm256_movemask_epi8(_mm256_permutevar8x32_epi32(is_escape, lane_order)));
    }
    if (!kAll) {
      escaped &= active_bits(active);
      for (int lane = active; lane < kLanes; lane++) {
        here[lane] = here[lane + kLanes] = 0;
      }
    }
    if (escaped != 0) {
      get_escapes(here, at, escaped, classes.least, packed_place, &chunk->raw);
      left = load256(at + kLanes);
    }
    if (words > words_end) return false;
    here += 2 * kLanes;
    at += 2 * kLanes;
  }
  chunk->words = words;
  for (int v = 0; v < kVectors; v++) store256(chunk->states + 8 * v, state[v]);
  return is_complete(*chunk);
}

bool decode_pairs(Decoding* chunk, const PairLattice& lattice, const Lanes& lanes,
                  const uint32_t* slots, const Classes& classes, PairScratch* scratch) {
  if (!starts_well(*chunk)) return false;
  if (lanes.full == kLanes) {
    return decode_steps<true>(chunk, lattice, lanes, slots, classes, scratch);
  }
  return decode_steps<false>(chunk, lattice, lanes, slots, classes, scratch);
}

}  // namespace

const PairKernels kAvx2Pairs = {index_pairs, encode_pairs, decode_pairs};

}  // namespace sz

#endif  // SZ_HAS_WIDE_KERNELS
