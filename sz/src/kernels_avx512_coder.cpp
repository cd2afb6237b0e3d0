// Contexts and the entropy coder, with AVX-512: the codes of a step are one vector, their states two.
#include <cmath>
#include <cstring>

#include "kernels.hpp"

#ifdef SZ_HAS_WIDE_KERNELS

#include <immintrin.h>

namespace sz {
namespace {

#include "avx512.inl"
#include "lanes.inl"
#include "model.inl"
#include "rans_avx512.inl"

static_assert(kLanes == 32);

// --- model ---

// By activity: the index of the context that has this level and the prediction 0.
struct LevelTable {
  alignas(64) uint16_t middle[32];
};
constexpr LevelTable make_level_table() {
  LevelTable table = {};
  for (int activity = 0; activity < 32; activity++) {
    int level = 0;
    for (int threshold : kThresholds) level += activity >= threshold;
    table.middle[activity] = static_cast<uint16_t>(level * (2 * kNearby + 1) + kNearby);
  }
  return table;
}
constexpr LevelTable kLevelTable = make_level_table();
static_assert(kThresholds[kLevels - 2] < 32);

struct Contexts {
  __m512i prediction;
  __m512i index;
};

// |a - b|; at least 2^15 - 1 where it saturates, which is beyond every threshold.
SZ_INLINE __m512i distance(__m512i a, __m512i b) {
  return _mm512_abs_epi16(_mm512_subs_epi16(a, b));
}

// context_of() of all lanes, of any codes. The median of left, up and left + up - corner is
// left + up less the corner, moved between them: that cannot overflow.
SZ_INLINE Contexts contexts_of(const Neighbours& n) {
  const __m512i left = load512(n.left), up = load512(n.up);
  const __m512i corner = load512(n.up_left), right = load512(n.up_right);
  const __m512i least = _mm512_min_epi16(left, up), most = _mm512_max_epi16(left, up);
  const __m512i between = _mm512_min_epi16(_mm512_max_epi16(corner, least), most);
  const __m512i prediction = _mm512_sub_epi16(_mm512_add_epi16(left, up), between);
  const __m512i activity = _mm512_adds_epu16(
      distance(left, corner), _mm512_adds_epu16(distance(corner, up), distance(up, right)));
  const __m512i middle = _mm512_permutexvar_epi16(_mm512_min_epu16(activity, _mm512_set1_epi16(31)),
                                                  load512(kLevelTable.middle));
  const __m512i near = _mm512_min_epi16(_mm512_max_epi16(prediction, _mm512_set1_epi16(-kNearby)),
                                        _mm512_set1_epi16(kNearby));
  return {prediction, _mm512_add_epi16(middle, near)};
}

// Table indices of all lanes of a step: context * kAlphabet + symbol. The bits of the result are the
// lanes whose symbols have raw bits; their indices mean nothing.
SZ_INLINE uint32_t indices_of(const int16_t* here, const Neighbours& neighbours,
                              uint16_t* indices) {
  const Contexts context = contexts_of(neighbours);
  const __m512i code = load512(here);
  const __m512i most = _mm512_set1_epi16(kDirect - 1);
  const __m512i residual = _mm512_sub_epi16(code, context.prediction);
  const __m512i folded =
      _mm512_xor_si512(_mm512_slli_epi16(residual, 1), _mm512_srai_epi16(residual, 15));
  const __mmask32 nonzero = _mm512_test_epi16_mask(code, code);
  const __m512i symbol =
      _mm512_maskz_add_epi16(nonzero, _mm512_min_epu16(folded, most), _mm512_set1_epi16(1));
  store512(indices, _mm512_add_epi16(_mm512_slli_epi16(context.index, 6), symbol));
  return _mm512_mask_cmpgt_epu16_mask(nonzero, folded, most);
}

void count_symbols(const int16_t* codes, const Lattice& lattice, const Lanes& lanes,
                   uint32_t* counts) {
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    const int16_t* here = codes + at.step * kLanes;
    const Neighbours neighbours = at.neighbours(codes);
    alignas(64) uint16_t index[kLanes];
    for (uint32_t large = indices_of(here, neighbours, index); large != 0; large &= large - 1) {
      const int lane = __builtin_ctz(large);
      const Context context = context_of(neighbours, lane);
      const int symbol = symbol_of(here[lane], context.prediction).index;
      index[lane] = static_cast<uint16_t>(context.index * kAlphabet + symbol);
    }
    for (int lane = 0; lane < active_lanes(lanes, at.step); lane++) counts[index[lane]]++;
  }
}

// --- entropy coder ---

// Replaces the entries of lanes that need raw bits or lack their symbol, last lane first.
void fix_entries(const int16_t* here, const Neighbours& neighbours, uint32_t lanes,
                 const uint32_t* symbols, __m512i* entries, RawWriter* raw) {
  alignas(64) uint32_t entry[kLanes];
  for (int v = 0; v < kVectors; v++) store512(entry + 16 * v, entries[v]);
  while (lanes != 0) {
    const int lane = 31 - __builtin_clz(lanes);
    lanes ^= 1u << lane;
    entry[lane] = entry_of(here[lane], context_of(neighbours, lane), symbols, raw);
  }
  for (int v = 0; v < kVectors; v++) entries[v] = load512(entry + 16 * v);
}

uint16_t* encode_lanes(const int16_t* codes, const Lattice& lattice, const Lanes& lanes,
                       const uint32_t* symbols, uint32_t* states, uint16_t* words, RawWriter* raw) {
  __m512i state[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load512(states + 16 * v);
  for (Walker at = Walker::at_end(lattice); at.step >= 0; at.previous()) {
    const __mmask32 active = first_lanes(active_lanes(lanes, at.step));
    const int16_t* here = codes + at.step * kLanes;
    const Neighbours neighbours = at.neighbours(codes);
    alignas(64) uint16_t index[kLanes];
    uint32_t fix = indices_of(here, neighbours, index);
    keep_stored(index);
    __m512i entries[kVectors];
    for (int v = 0; v < kVectors; v++) {
      entries[v] = look_up(symbols, index + 16 * v);
      fix |= uint32_t{_mm512_testn_epi32_mask(entries[v], entries[v])} << (16 * v);
    }
    fix &= active;
    if (fix != 0) fix_entries(here, neighbours, fix, symbols, entries, raw);
    for (int v = kVectors - 1; v >= 0; v--) {
      words = encode_vector(entries[v], lanes_of(active, v), &state[v], words);
    }
  }
  for (int v = 0; v < kVectors; v++) store512(states + 16 * v, state[v]);
  return words;
}

// The 16-bit numbers of two vectors of 32-bit ones.
SZ_INLINE __m512i narrow(__m512i low, __m512i high) {
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                  _mm512_packus_epi32(low, high));
}

// Decodes the codes of lanes whose symbols have raw bits, first lane first.
void fix_codes(int16_t* here, const Neighbours& neighbours, uint32_t lanes, __m512i symbols,
               RawReader* raw) {
  alignas(64) int16_t symbol[kLanes];
  store512(symbol, symbols);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    const Context context = context_of(neighbours, lane);
    here[lane] = static_cast<int16_t>(code_of(symbol[lane], context.prediction, raw));
  }
}

bool decode_lanes(Decoding* chunk, const Lattice& lattice, const Lanes& lanes,
                  const uint32_t* slots) {
  if (!starts_well(*chunk)) return false;
  const uint8_t* words = chunk->words;
  __m512i state[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load512(chunk->states + 16 * v);
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    const __mmask32 active = first_lanes(active_lanes(lanes, at.step));
    int16_t* here = chunk->codes + at.step * kLanes;
    const Neighbours neighbours = at.neighbours(chunk->codes);
    const Contexts context = contexts_of(neighbours);
    __m512i symbols[kVectors];
    for (int v = 0; v < kVectors; v++) {
      const __m256i index = v == 0 ? _mm512_castsi512_si256(context.index)
                                   : _mm512_extracti64x4_epi64(context.index, 1);
      const __m512i begin = _mm512_slli_epi32(_mm512_cvtepu16_epi32(index), kProbabilityBits);
      const __m512i entry = decode_vector(slots, begin, lanes_of(active, v), &state[v], &words);
      symbols[v] = _mm512_and_si512(entry, _mm512_set1_epi32(kSymbolMask));
    }
    const __m512i symbol = narrow(symbols[0], symbols[1]);
    // Odd symbols s are s / 2 above the prediction, even ones below, but for 0.
    const __m512i half = _mm512_srli_epi16(symbol, 1);
    const __mmask32 above = _mm512_mask_test_epi16_mask(active, symbol, _mm512_set1_epi16(1));
    const __mmask32 nonzero = _mm512_mask_test_epi16_mask(active, symbol, symbol);
    const __m512i below = _mm512_maskz_sub_epi16(nonzero, context.prediction, half);
    store512(here, _mm512_mask_add_epi16(below, above, context.prediction, half));
    const uint32_t fix = _mm512_mask_cmpgt_epu16_mask(active, symbol, _mm512_set1_epi16(kDirect));
    if (fix != 0) fix_codes(here, neighbours, fix, symbol, &chunk->raw);
    if (words > chunk->words_end) return false;
  }
  chunk->words = words;
  for (int v = 0; v < kVectors; v++) store512(chunk->states + 16 * v, state[v]);
  return is_complete(*chunk);
}

}  // namespace

const CoderKernels kAvx512Coder = {count_symbols, encode_lanes, decode_lanes};

}  // namespace sz

#endif  // SZ_HAS_WIDE_KERNELS
