// Contexts and the entropy coder, with AVX2.
#include <cmath>
#include <cstring>

#include "kernels.hpp"

#ifdef SZ_HAS_WIDE_KERNELS

#include <immintrin.h>

namespace sz {
namespace {

#include "avx2.inl"
#include "lanes.inl"
#include "model.inl"
#include "rans_avx2.inl"

// --- model ---

constexpr int kLevelWidth = 2 * kNearby + 1;

// kLevelWidth times the level of activities 0 to 15, all but the last threshold counted.
struct SmallLevels {
  alignas(16) uint8_t of[16];
};
constexpr SmallLevels make_small_levels() {
  SmallLevels levels = {};
  for (int activity = 0; activity < 16; activity++) {
    for (int i = 0; i < kLevels - 2; i++) {
      if (activity >= kThresholds[i]) levels.of[activity] += kLevelWidth;
    }
  }
  return levels;
}
constexpr SmallLevels kSmallLevels = make_small_levels();
static_assert(kThresholds[kLevels - 3] < 16 && kThresholds[kLevels - 2] >= 16);

struct Contexts {
  __m256i prediction;
  __m256i index;
};

// |a - b|; at least 2^15 - 1 where it saturates, which is beyond every threshold.
SZ_INLINE __m256i distance(__m256i a, __m256i b) {
  return _mm256_abs_epi16(_mm256_subs_epi16(a, b));
}

// context_of() of 16 lanes, of any codes. The median of left, up and left + up - corner is left + up
// less the corner, moved between them: that cannot overflow.
SZ_INLINE Contexts contexts_of(const Neighbours& n, int lane) {
  const __m256i left = load256(n.left + lane), up = load256(n.up + lane);
  const __m256i corner = load256(n.up_left + lane), right = load256(n.up_right + lane);
  const __m256i least = _mm256_min_epi16(left, up), most = _mm256_max_epi16(left, up);
  const __m256i between = _mm256_min_epi16(_mm256_max_epi16(corner, least), most);
  const __m256i prediction = _mm256_sub_epi16(_mm256_add_epi16(left, up), between);
  const __m256i activity = _mm256_adds_epu16(
      distance(left, corner), _mm256_adds_epu16(distance(corner, up), distance(up, right)));
  // Levels times the width of a level: of small activities by a table, then the last threshold.
  const __m256i small = _mm256_min_epu16(activity, _mm256_set1_epi16(15));
  const __m256i highest = _mm256_set1_epi16(kThresholds[kLevels - 2]);
  const __m256i last =
      _mm256_and_si256(_mm256_cmpeq_epi16(_mm256_min_epu16(activity, highest), highest),
                       _mm256_set1_epi16(kLevelWidth));
  const __m256i level = _mm256_add_epi16(
      _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(kSmallLevels.of)), small), last);
  const __m256i near = _mm256_min_epi16(_mm256_max_epi16(prediction, _mm256_set1_epi16(-kNearby)),
                                        _mm256_set1_epi16(kNearby));
  return {prediction, _mm256_add_epi16(level, _mm256_add_epi16(near, _mm256_set1_epi16(kNearby)))};
}

// Bit i: word i is not zero.
SZ_INLINE uint32_t nonzero_words(__m256i low, __m256i high) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i bytes =
      _mm256_packs_epi16(_mm256_cmpeq_epi16(low, zero), _mm256_cmpeq_epi16(high, zero));
  return ~static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(bytes, 0xd8)));
}

// Table indices of all lanes of a step: context * kAlphabet + symbol. The bits of the result are the
// lanes whose symbols have raw bits; their indices mean nothing.
SZ_INLINE uint32_t indices_of(const int16_t* here, const Neighbours& neighbours, __m256i* indices) {
  __m256i large[kHalves];
  for (int half = 0; half < kHalves; half++) {
    const Contexts context = contexts_of(neighbours, 16 * half);
    const __m256i code = load256(here + 16 * half);
    const __m256i residual = _mm256_sub_epi16(code, context.prediction);
    const __m256i folded =
        _mm256_xor_si256(_mm256_slli_epi16(residual, 1), _mm256_srai_epi16(residual, 15));
    const __m256i zero = _mm256_cmpeq_epi16(code, _mm256_setzero_si256());
    large[half] =
        _mm256_andnot_si256(zero, _mm256_subs_epu16(folded, _mm256_set1_epi16(kDirect - 1)));
    const __m256i symbol = _mm256_andnot_si256(
        zero, _mm256_add_epi16(_mm256_min_epu16(folded, _mm256_set1_epi16(kDirect - 1)),
                               _mm256_set1_epi16(1)));
    indices[half] = _mm256_add_epi16(_mm256_slli_epi16(context.index, 6), symbol);
  }
  return nonzero_words(large[0], large[1]);
}

void count_symbols(const int16_t* codes, const Lattice& lattice, const Lanes& lanes,
                   uint32_t* counts) {
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    const int16_t* here = codes + at.step * kLanes;
    const Neighbours neighbours = at.neighbours(codes);
    __m256i indices[kHalves];
    uint32_t large = indices_of(here, neighbours, indices);
    alignas(32) uint16_t index[kLanes];
    store256(index, indices[0]);
    store256(index + 16, indices[1]);
    for (; large != 0; large &= large - 1) {
      const int lane = __builtin_ctz(large);
      const Context context = context_of(neighbours, lane);
      const int symbol = symbol_of(here[lane], context.prediction).index;
      index[lane] = static_cast<uint16_t>(context.index * kAlphabet + symbol);
    }
    for (int lane = 0; lane < active_lanes(lanes, at.step); lane++) counts[index[lane]]++;
  }
}

// --- entropy coder ---

SZ_INLINE __m256i low_words(const __m256i* halves, int vector) {
  const __m256i half = halves[vector / 2];
  return _mm256_cvtepu16_epi32(vector % 2 == 0 ? _mm256_castsi256_si128(half)
                                               : _mm256_extracti128_si256(half, 1));
}

// Replaces the entries of lanes that need raw bits or lack their symbol, last lane first.
void fix_entries(const int16_t* here, const Neighbours& neighbours, uint32_t lanes,
                 const uint32_t* symbols, __m256i* entries, RawWriter* raw) {
  alignas(32) uint32_t entry[kLanes];
  for (int v = 0; v < kVectors; v++) store256(entry + 8 * v, entries[v]);
  while (lanes != 0) {
    const int lane = 31 - __builtin_clz(lanes);
    lanes ^= 1u << lane;
    entry[lane] = entry_of(here[lane], context_of(neighbours, lane), symbols, raw);
  }
  for (int v = 0; v < kVectors; v++) entries[v] = load256(entry + 8 * v);
}

template <bool kAll>
SZ_INLINE uint16_t* encode_steps(const int16_t* codes, const Lattice& lattice, const Lanes& lanes,
                                 const uint32_t* symbols, uint32_t* states, uint16_t* words,
                                 RawWriter* raw) {
  __m256i state[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load256(states + 8 * v);
  for (Walker at = Walker::at_end(lattice); at.step >= 0; at.previous()) {
    const int active = kAll ? kLanes : active_lanes(lanes, at.step);
    const int16_t* here = codes + at.step * kLanes;
    const Neighbours neighbours = at.neighbours(codes);
    __m256i indices[kHalves], entries[kVectors];
    uint32_t fix = indices_of(here, neighbours, indices);
    alignas(32) uint16_t index[kLanes];
    store256(index, indices[0]);
    store256(index + 16, indices[1]);
    for (int v = 0; v < kVectors; v++) {
      entries[v] = look_up(symbols, index + 8 * v);
      const __m256i lacking = _mm256_cmpeq_epi32(entries[v], _mm256_setzero_si256());
      fix |= static_cast<uint32_t>(_mm256_movemask_ps(as_floats(lacking))) << (8 * v);
    }
    fix &= active_bits(active);
    if (fix != 0) fix_entries(here, neighbours, fix, symbols, entries, raw);
    for (int v = kVectors - 1; v >= 0; v--) {
      words = encode_vector<kAll>(entries[v], active, v, &state[v], words);
    }
  }
  for (int v = 0; v < kVectors; v++) store256(states + 8 * v, state[v]);
  return words;
}

uint16_t* encode_lanes(const int16_t* codes, const Lattice& lattice, const Lanes& lanes,
                       const uint32_t* symbols, uint32_t* states, uint16_t* words, RawWriter* raw) {
  const auto encode = lanes.full == kLanes ? encode_steps<true> : encode_steps<false>;
  return encode(codes, lattice, lanes, symbols, states, words, raw);
}

// Decodes the codes of lanes whose symbols have raw bits, first lane first.
void fix_codes(int16_t* here, const Neighbours& neighbours, uint32_t lanes, const __m256i* symbols,
               RawReader* raw) {
  alignas(32) int16_t symbol[kLanes];
  for (int half = 0; half < kHalves; half++) store256(symbol + 16 * half, symbols[half]);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    const Context context = context_of(neighbours, lane);
    here[lane] = static_cast<int16_t>(code_of(symbol[lane], context.prediction, raw));
  }
}

// Decodes one step of a chunk.
template <bool kAll>
SZ_INLINE void decode_step(Decoding* chunk, const Walker& at, const uint32_t* slots, int active,
                           __m256i* state, const uint8_t** words) {
  int16_t* here = chunk->codes + at.step * kLanes;
  const Neighbours neighbours = at.neighbours(chunk->codes);
  const __m256i mask = _mm256_set1_epi32(kSymbolMask);
  __m256i symbols[kHalves], large[kHalves];
  for (int half = 0; half < kHalves; half++) {
    const Contexts context = contexts_of(neighbours, 16 * half);
    __m256i entries[2];
    for (int i = 0; i < 2; i++) {
      const int v = 2 * half + i;
      const __m256i begin = _mm256_slli_epi32(low_words(&context.index, i), kProbabilityBits);
      entries[i] = decode_vector<kAll>(slots, begin, active, v, &state[v], words);
      entries[i] = _mm256_and_si256(entries[i], mask);
      if (!kAll) entries[i] = _mm256_and_si256(entries[i], active_mask(active, v));
    }
    const __m256i symbol =
        _mm256_permute4x64_epi64(_mm256_packus_epi32(entries[0], entries[1]), 0xd8);
    const __m256i folded = _mm256_sub_epi16(symbol, _mm256_set1_epi16(1));
    const __m256i odd =
        _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_and_si256(folded, _mm256_set1_epi16(1)));
    const __m256i residual = _mm256_xor_si256(_mm256_srli_epi16(folded, 1), odd);
    const __m256i zero = _mm256_cmpeq_epi16(symbol, _mm256_setzero_si256());
    store256(here + 16 * half,
             _mm256_andnot_si256(zero, _mm256_add_epi16(context.prediction, residual)));
    symbols[half] = symbol;
    large[half] = _mm256_subs_epu16(symbol, _mm256_set1_epi16(kDirect));
  }
  const uint32_t fix = nonzero_words(large[0], large[1]);
  if (fix != 0) fix_codes(here, neighbours, fix, symbols, &chunk->raw);
}

template <bool kAll>
SZ_INLINE bool decode_steps(Decoding* chunk, const Lattice& lattice, const Lanes& lanes,
                            const uint32_t* slots) {
  __m256i state[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load256(chunk->states + 8 * v);
  const uint8_t* words = chunk->words;
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    const int active = kAll ? kLanes : active_lanes(lanes, at.step);
    decode_step<kAll>(chunk, at, slots, active, state, &words);
    if (words > chunk->words_end) return false;
  }
  chunk->words = words;
  for (int v = 0; v < kVectors; v++) store256(chunk->states + 8 * v, state[v]);
  return is_complete(*chunk);
}

bool decode_lanes(Decoding* chunk, const Lattice& lattice, const Lanes& lanes,
                  const uint32_t* slots) {
  if (!starts_well(*chunk)) return false;
  const auto decode = lanes.full == kLanes ? decode_steps<true> : decode_steps<false>;
  return decode(chunk, lattice, lanes, slots);
}

}  // namespace

const CoderKernels kAvx2Coder = {count_symbols, encode_lanes, decode_lanes};

}  // namespace sz

#endif  // SZ_HAS_WIDE_KERNELS
