// Pairs of codes with AVX-512. Contexts are bytes, for which 256 bits suffice.
#include <cstring>

#include "kernels.hpp"

#ifdef SZ_HAS_WIDE_KERNELS

#include <immintrin.h>

namespace sz {
namespace {

#include "avx512.inl"
#include "lanes.inl"
#include "pairs.inl"
#include "pairs_bytes.inl"
#include "rans_avx512.inl"

SZ_INLINE uint16_t* encode_step(const int16_t* codes, const PairLattice& lattice,
                                const Lanes& lanes, const uint32_t* symbols, int least, int step,
                                const uint16_t* index, __m512i* state, uint16_t* words,
                                RawWriter* raw) {
  const __mmask32 active = first_lanes(active_lanes(lanes, step));
  __m512i entries[kVectors];
  uint32_t flagged = 0;
  for (int v = 0; v < kVectors; v++) {
    entries[v] = look_up(symbols, index + 16 * v);
    const __mmask16 flags = _mm512_test_epi32_mask(entries[v], _mm512_set1_epi32(kEscapedPair));
    flagged |= uint32_t{flags} << (16 * v);
  }
  flagged &= active;
  if (flagged != 0) put_escapes(codes, lattice, lanes, step, flagged, least, raw);
  for (int v = kVectors - 1; v >= 0; v--) {
    words = encode_vector(entries[v], lanes_of(active, v), &state[v], words);
  }
  return words;
}

uint16_t* encode_pairs(const int16_t* codes, const PairLattice& lattice, const Lanes& lanes,
                       const uint32_t* symbols, const Classes& classes, PairScratch* scratch,
                       uint32_t* states, uint16_t* words, RawWriter* raw) {
  index_pairs(codes, lattice, classes, scratch);
  __m512i state[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load512(states + 16 * v);
  for (int step = (lattice.steps - 1) / 2 * 2; step >= 0; step -= 2) {
    uint16_t* index = scratch->indices + step / 2 * kLanes;
    if (lanes.full < kLanes || step + 1 == lattice.steps) {
      end_lanes(codes, lattice, lanes, classes.least, step, index);
    }
    words =
        encode_step(codes, lattice, lanes, symbols, classes.least, step, index, state, words, raw);
  }
  for (int v = 0; v < kVectors; v++) store512(states + 16 * v, state[v]);
  return words;
}

int natural_place(int lane) {
  return lane;
}

SZ_INLINE void store_codes(int16_t* codes, __mmask32 active, __m256i classes, __m256i least) {
  const __m512i words = _mm512_cvtepi8_epi16(_mm256_add_epi8(classes, least));
  store512(codes, _mm512_maskz_mov_epi16(active, words));
}

bool decode_pairs(Decoding* chunk, const PairLattice& lattice, const Lanes& lanes,
                  const uint32_t* slots, const Classes& classes, PairScratch* scratch) {
  if (!starts_well(*chunk)) return false;
  __m512i state[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load512(chunk->states + 16 * v);
  uint8_t* at = scratch->classes + kLanes;
  const ptrdiff_t row = static_cast<ptrdiff_t>(lattice.distance) * kLanes;
  PlaneWalker plane = {lattice, 0};
  const __m256i least = _mm256_set1_epi8(static_cast<char>(classes.least));
  const __m256i predicted_level = level_table(classes, kPairLevels);
  const __m256i right_level = level_table(classes, 1);
  const __m256i nibble = _mm256_set1_epi8(15);
  __m256i left = _mm256_setzero_si256();
  store256(scratch->classes, left);
  int16_t* here = chunk->codes;
  const uint8_t* words = chunk->words;
  for (int step = 0; step < lattice.steps; step += 2, plane.next()) {
    const __mmask32 active = first_lanes(active_lanes(lanes, step));
    const __m256i contexts =
        pair_contexts(left, plane.on_top() ? nullptr : at - row, predicted_level, right_level);
    __m128i symbols[kVectors];
    for (int v = 0; v < kVectors; v++) {
      const __m128i half =
          v == 0 ? _mm256_castsi256_si128(contexts) : _mm256_extracti128_si256(contexts, 1);
      const __m512i begin = _mm512_slli_epi32(_mm512_cvtepu8_epi32(half), kProbabilityBits);
      const __m512i entry = decode_vector(slots, begin, lanes_of(active, v), &state[v], &words);
      static_assert(kSymbolBits == 8);  // what is left of an entry
      symbols[v] = _mm512_cvtepi32_epi8(entry);
    }
    const __m256i symbol =
        _mm256_inserti128_si256(_mm256_castsi128_si256(symbols[0]), symbols[1], 1);
    const __m256i first = _mm256_and_si256(symbol, nibble);
    const __m256i second = _mm256_and_si256(_mm256_srli_epi16(symbol, 4), nibble);
    left = second;
    store256(at, first);
    store256(at + kLanes, second);
    store_codes(here, active, first, least);
    store_codes(here + kLanes, active, second, least);
    const uint32_t escaped = _mm256_mask_cmpeq_epi8_mask(active, symbol, _mm256_set1_epi8(-1));
    if (escaped != 0) {
      get_escapes(here, at, escaped, classes.least, natural_place, &chunk->raw);
      left = load256(at + kLanes);
    }
    if (words > chunk->words_end) return false;
    here += 2 * kLanes;
    at += 2 * kLanes;
  }
  chunk->words = words;
  for (int v = 0; v < kVectors; v++) store512(chunk->states + 16 * v, state[v]);
  return is_complete(*chunk);
}

}  // namespace

const PairKernels kAvx512Pairs = {index_pairs, encode_pairs, decode_pairs};

}  // namespace sz

#endif  // SZ_HAS_WIDE_KERNELS
