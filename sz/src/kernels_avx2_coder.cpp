// Contexts and the entropy coder, with AVX2.
#include <cmath>
#include <cstring>

#include "kernels.hpp"

#ifdef SZ_HAS_WIDE_KERNELS

#include <immintrin.h>

namespace sz {
namespace {

#include "avx2.inl"
#include "model.inl"

// Byte shuffles of eight 16-bit words, by a mask of the chosen ones.
struct Shuffles {
  alignas(64) uint8_t to_end[256][16];  // moves the chosen words to the end, in order
  alignas(64) uint8_t spread[256][16];  // moves the first words to the chosen places
};

constexpr Shuffles make_shuffles() {
  Shuffles shuffles = {};
  for (int mask = 0; mask < 256; mask++) {
    int chosen = 0;
    for (int i = 0; i < 8; i++) chosen += mask >> i & 1;
    int to = 8 - chosen, from = 0;
    for (int i = 0; i < 16; i++) {
      shuffles.to_end[mask][i] = 0x80;
      shuffles.spread[mask][i] = 0x80;
    }
    for (int i = 0; i < 8; i++) {
      if ((mask >> i & 1) == 0) continue;
      for (int byte = 0; byte < 2; byte++) {
        shuffles.to_end[mask][2 * to + byte] = static_cast<uint8_t>(2 * i + byte);
        shuffles.spread[mask][2 * i + byte] = static_cast<uint8_t>(2 * from + byte);
      }
      to++;
      from++;
    }
  }
  return shuffles;
}

constexpr Shuffles kShuffles = make_shuffles();

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

// All ones in the lanes below `active`.
void fill_active(int active, __m256i* masks) {
  for (int v = 0; v < kVectors; v++) {
    const __m256i lane =
        _mm256_add_epi32(_mm256_set1_epi32(8 * v), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    masks[v] = _mm256_cmpgt_epi32(_mm256_set1_epi32(active), lane);
  }
}

uint32_t active_bits(int active) {
  return active == 32 ? ~0u : (1u << active) - 1;
}

SZ_INLINE __m256i low_words(const __m256i* halves, int vector) {
  const __m256i half = halves[vector / 2];
  return _mm256_cvtepu16_epi32(vector % 2 == 0 ? _mm256_castsi256_si128(half)
                                               : _mm256_extracti128_si256(half, 1));
}

// Eight loads are faster than a gather where that is microcode.
template <typename... Index>
SZ_INLINE __m256i look_up(const uint32_t* table, Index... i) {
  return _mm256_setr_epi32(static_cast<int>(table[i])...);
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

// One step of rANS in 8 lanes: states too large for their symbols give up a word first.
SZ_INLINE uint16_t* encode_vector(__m256i entry, __m256i active, __m256i* state, uint16_t* words) {
  const __m256i frequency = _mm256_and_si256(entry, _mm256_set1_epi32(0xffff));
  const __m256i start = _mm256_srli_epi32(entry, 16);
  __m256i x = *state;
  const __m256i most =
      _mm256_sub_epi32(_mm256_slli_epi32(frequency, 31 - kProbabilityBits), _mm256_set1_epi32(1));
  const __m256i full = _mm256_and_si256(_mm256_cmpgt_epi32(x, most), active);
  const auto mask = static_cast<uint32_t>(_mm256_movemask_ps(as_floats(full)));
  const __m256i low = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words - 8),
                   _mm_shuffle_epi8(packed, load128(kShuffles.to_end[mask])));
  words -= _mm_popcnt_u32(mask);
  x = _mm256_blendv_epi8(x, _mm256_srli_epi32(x, 16), full);
  // The quotient is below 2^21. Divided a little smaller, its float is right or one too small.
  const __m256 smaller = _mm256_mul_ps(_mm256_cvtepi32_ps(x), _mm256_set1_ps(1 - 0x1p-22f));
  __m256i quotient = _mm256_cvttps_epi32(_mm256_div_ps(smaller, _mm256_cvtepi32_ps(frequency)));
  __m256i rest = _mm256_sub_epi32(x, _mm256_mullo_epi32(quotient, frequency));
  const __m256i fits = _mm256_cmpgt_epi32(frequency, rest);
  quotient = _mm256_add_epi32(quotient, _mm256_add_epi32(fits, _mm256_set1_epi32(1)));
  rest = _mm256_sub_epi32(rest, _mm256_andnot_si256(fits, frequency));
  const __m256i next = _mm256_add_epi32(_mm256_slli_epi32(quotient, kProbabilityBits),
                                        _mm256_add_epi32(rest, start));
  *state = _mm256_blendv_epi8(*state, next, active);
  return words;
}

uint16_t* encode_lanes(const int16_t* codes, const Lattice& lattice, const Lanes& lanes,
                       const uint32_t* symbols, uint32_t* states, uint16_t* words, RawWriter* raw) {
  __m256i state[kVectors], active[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load256(states + 8 * v);
  int active_count = active_lanes(lanes, lattice.steps - 1);
  fill_active(active_count, active);
  for (Walker at = Walker::at_end(lattice); at.step >= 0; at.previous()) {
    if (active_lanes(lanes, at.step) != active_count) {
      active_count = active_lanes(lanes, at.step);
      fill_active(active_count, active);
    }
    const int16_t* here = codes + at.step * kLanes;
    const Neighbours neighbours = at.neighbours(codes);
    __m256i indices[kHalves], entries[kVectors];
    uint32_t fix = indices_of(here, neighbours, indices);
    alignas(32) uint16_t index[kLanes];
    store256(index, indices[0]);
    store256(index + 16, indices[1]);
    for (int v = 0; v < kVectors; v++) {
      const uint16_t* i = index + 8 * v;
      entries[v] = look_up(symbols, i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]);
      const __m256i lacking = _mm256_cmpeq_epi32(entries[v], _mm256_setzero_si256());
      fix |= static_cast<uint32_t>(_mm256_movemask_ps(as_floats(lacking))) << (8 * v);
    }
    fix &= active_bits(active_count);
    if (fix != 0) fix_entries(here, neighbours, fix, symbols, entries, raw);
    for (int v = kVectors - 1; v >= 0; v--) {
      words = encode_vector(entries[v], active[v], &state[v], words);
    }
  }
  for (int v = 0; v < kVectors; v++) store256(states + 8 * v, state[v]);
  return words;
}

// One step back in 8 lanes; gives the symbols. The words must be readable for 16 bytes.
SZ_INLINE __m256i decode_vector(const uint32_t* slots, __m256i context, __m256i active,
                                __m256i* state, const uint8_t** words) {
  const __m256i x = *state;
  const __m256i slot = _mm256_or_si256(_mm256_slli_epi32(context, kProbabilityBits),
                                       _mm256_and_si256(x, _mm256_set1_epi32(kProbabilityOne - 1)));
  alignas(32) uint32_t i[8];
  store256(i, slot);
  const __m256i entry = look_up(slots, i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]);
  const __m256i frequency = _mm256_and_si256(_mm256_srli_epi32(entry, 6), _mm256_set1_epi32(0x7ff));
  __m256i next =
      _mm256_add_epi32(_mm256_mullo_epi32(frequency, _mm256_srli_epi32(x, kProbabilityBits)),
                       _mm256_srli_epi32(entry, 17));
  // Unsigned: the states of a malformed stream may be any.
  const __m256i below = _mm256_min_epu32(next, _mm256_set1_epi32(kLeastState - 1));
  const __m256i short_of = _mm256_and_si256(_mm256_cmpeq_epi32(below, next), active);
  const auto mask = static_cast<uint32_t>(_mm256_movemask_ps(as_floats(short_of)));
  const __m128i spread = _mm_shuffle_epi8(load128(*words), load128(kShuffles.spread[mask]));
  *words += 2 * _mm_popcnt_u32(mask);
  const __m256i longer =
      _mm256_or_si256(_mm256_slli_epi32(next, 16), _mm256_cvtepu16_epi32(spread));
  next = _mm256_blendv_epi8(next, longer, short_of);
  *state = _mm256_blendv_epi8(x, next, active);
  return _mm256_and_si256(entry, _mm256_set1_epi32(63));
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
SZ_INLINE void decode_step(Decoding* chunk, const Walker& at, const uint32_t* slots,
                           const __m256i* active, __m256i* state) {
  int16_t* here = chunk->codes + at.step * kLanes;
  const Neighbours neighbours = at.neighbours(chunk->codes);
  __m256i symbols[kHalves], large[kHalves];
  for (int half = 0; half < kHalves; half++) {
    const Contexts context = contexts_of(neighbours, 16 * half);
    const __m256i low = decode_vector(slots, low_words(&context.index, 0), active[2 * half],
                                      &state[2 * half], &chunk->words);
    const __m256i high = decode_vector(slots, low_words(&context.index, 1), active[2 * half + 1],
                                       &state[2 * half + 1], &chunk->words);
    const __m256i on =
        _mm256_permute4x64_epi64(_mm256_packs_epi32(active[2 * half], active[2 * half + 1]), 0xd8);
    const __m256i symbol =
        _mm256_and_si256(on, _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8));
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

bool decode_lanes(Decoding* chunk, const Lattice& lattice, const Lanes& lanes,
                  const uint32_t* slots) {
  __m256i state[kVectors], active[kVectors];
  for (int v = 0; v < kVectors; v++) state[v] = load256(chunk->states + 8 * v);
  int active_count = active_lanes(lanes, 0);
  fill_active(active_count, active);
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    if (active_lanes(lanes, at.step) != active_count) {
      active_count = active_lanes(lanes, at.step);
      fill_active(active_count, active);
    }
    decode_step(chunk, at, slots, active, state);
    if (chunk->words > chunk->words_end) return false;
  }
  for (int v = 0; v < kVectors; v++) store256(chunk->states + 8 * v, state[v]);
  return is_complete(*chunk);
}

}  // namespace

const CoderKernels kAvx2Coder = {count_symbols, encode_lanes, decode_lanes};

}  // namespace sz

#endif  // SZ_HAS_WIDE_KERNELS
