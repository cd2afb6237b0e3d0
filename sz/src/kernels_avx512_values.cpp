// Quantising, restoring and adding up values, with AVX-512: a vector is one lane's part of a block.
#include <cmath>
#include <cstring>

#include "kernels.hpp"

#ifdef SZ_HAS_WIDE_KERNELS

#include <immintrin.h>

namespace sz {
namespace {

#include "avx512.inl"
#include "portable_values.inl"

static_assert(kBlockSteps == 16 && kLanes == 32);

SZ_INLINE __m512 sign_bits() {
  return _mm512_set1_ps(-0.0f);
}

// dither_of() of 16 values, each plus `more`, a multiple of 2^-17 below 64.
SZ_INLINE __m512 dither16(uint32_t key, float more) {
  const __m256i steps = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                           _mm256_set1_epi32(static_cast<int>(kPairStep)));
  __m256i h = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(key)), steps);
  h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 16)),
                         _mm256_set1_epi32(0x7feb352d));
  h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 15)),
                         _mm256_set1_epi32(static_cast<int>(0x846ca68bu)));
  h = _mm256_xor_si256(h, _mm256_srli_epi32(h, 16));
  // A half below these bits is 128 + half / 2^16.
  const __m512i exponent = _mm512_set1_epi32(0x43000000);
  const __m512i bits = _mm512_or_si512(_mm512_cvtepu16_epi32(h), exponent);
  return _mm512_sub_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(128 - 0x1p-17f - more));
}

// One of two numbers for each value, by its sign. Both are the same unless signs are scaled.
template <Signs kSign>
SZ_INLINE __m512 by_sign(__mmask16 is_negative, float positive, float negative) {
  if constexpr (kSign != Signs::Scaled) return _mm512_set1_ps(positive);
  return _mm512_mask_mov_ps(_mm512_set1_ps(positive), is_negative, _mm512_set1_ps(negative));
}

// Whether a grid's tables have 16 codes.
SZ_INLINE bool are_small(__m256i codes) {
  const __m256i moved = _mm256_add_epi16(codes, _mm256_set1_epi16(8));
  return _mm256_testz_si256(moved, _mm256_set1_epi16(~15)) != 0;
}

// Values of any 16 codes.
template <Signs kSign, bool kDither>
SZ_INLINE __m512 dequantize16(__m512i code, __m512 dither, const Grid<float>& grid) {
  const __mmask16 below = _mm512_movepi32_mask(code);
  const __m512 q = _mm512_cvtepi32_ps(code);
  const __m512 step = by_sign<kSign>(below, grid.positive.step, grid.negative.step);
  if constexpr (kSign == Signs::Lost && !kDither) return _mm512_mul_ps(q, step);
  const __mmask16 nonzero = _mm512_test_epi32_mask(code, code);
  const __m512 sign = _mm512_and_ps(q, sign_bits());
  const __m512 magnitude = _mm512_abs_ps(q);
  const __m512 half = _mm512_set1_ps(0.5f), one = _mm512_set1_ps(1);
  if constexpr (kSign == Signs::Lost) {
    const __m512 base = _mm512_or_ps(_mm512_mul_ps(_mm512_sub_ps(magnitude, half), step), sign);
    return _mm512_maskz_sub_ps(nonzero, base, _mm512_mul_ps(dither, step));
  } else if constexpr (!kDither) {
    const __m512 y = _mm512_mul_ps(_mm512_sub_ps(magnitude, half), step);
    return _mm512_maskz_or_ps(nonzero, y, sign);
  } else {
    __m512 less = one;
    __mmask16 crossing = _mm512_cmp_ps_mask(magnitude, one, _CMP_EQ_OQ);
    if constexpr (kSign == Signs::Scaled) {  // negative values have no dither
      less = _mm512_mask_mov_ps(one, below, half);
      crossing = _kandn_mask16(below, crossing);
      dither = _mm512_maskz_mov_ps(_knot_mask16(below), dither);
    }
    const __m512 base = _mm512_mul_ps(_mm512_sub_ps(magnitude, less), step);
    const __m512 y = _mm512_sub_ps(base, _mm512_mul_ps(dither, step));
    const __m512 smallest = _mm512_set1_ps(Float<float>::kSmallest);
    return _mm512_maskz_or_ps(nonzero, _mm512_mask_mov_ps(y, crossing, smallest), sign);
  }
}

// What to add to the dither in quantize16(), so that truncating does the rest.
template <Signs kSign>
constexpr float kUp = kSign == Signs::Lost ? 0 : 1.5f;

// Codes of 16 values: beyond kSureCodes, or not those, where they may miss the bound.
template <Signs kSign, bool kDither>
SZ_INLINE __m256i quantize16(__m512 x, __m512 up, const Grid<float>& grid) {
  const __m512i one = _mm512_set1_epi32(1);
  const __mmask16 below = _mm512_movepi32_mask(_mm512_castps_si512(x));
  const __m512 scaled =
      _mm512_mul_ps(x, by_sign<kSign>(below, grid.positive.inverse, grid.negative.inverse));
  __m512i code;
  if constexpr (kSign == Signs::Lost && !kDither) {
    code = _mm512_cvtps_epi32(scaled);
  } else if constexpr (kSign == Signs::Lost) {
    constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    code = _mm512_cvt_roundps_epi32(_mm512_add_ps(scaled, up), kDown);
    const __mmask16 right = _mm512_cmpge_epi32_mask(code, _mm512_setzero_si512());
    code = _mm512_mask_add_epi32(code, right, code, one);
  } else {
    if constexpr (!kDither) up = _mm512_set1_ps(1);
    if constexpr (kDither && kSign == Signs::Scaled) {
      up = _mm512_mask_mov_ps(up, below, _mm512_set1_ps(1));
    }
    code = _mm512_cvttps_epi32(_mm512_add_ps(_mm512_abs_ps(scaled), up));
    code = _mm512_mask_sub_epi32(code, below, _mm512_setzero_si512(), code);
  }
  const __mmask16 nonzero = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  return _mm512_maskz_cvtsepi32_epi16(nonzero, code);
}

// The same codes, with zeros in place of those that miss the bound; then `good` is false.
template <Signs kSign, bool kDither>
SZ_INLINE __m256i check16(__m512 x, __m512 dither, const Grid<float>& grid, __m256i codes,
                          bool* good) {
  const Scale<float>&positive = grid.positive, &negative = grid.negative;
  const __mmask16 below = _mm512_movepi32_mask(_mm512_castps_si512(x));
  const __m512 scaled = _mm512_mul_ps(x, by_sign<kSign>(below, positive.inverse, negative.inverse));
  const __m512 limit = _mm512_set1_ps(static_cast<float>(kCodeLimit));
  const __mmask16 in_range = _mm512_cmp_ps_mask(_mm512_abs_ps(scaled), limit, _CMP_LE_OQ);
  const __m512 y = dequantize16<kSign, kDither>(_mm512_cvtepi16_epi32(codes), dither, grid);
  const __m512 threshold = by_sign<kSign>(below, positive.threshold, negative.threshold);
  const __mmask16 in_bound =
      _mm512_mask_cmp_ps_mask(in_range, _mm512_abs_ps(_mm512_sub_ps(x, y)), threshold, _CMP_LE_OQ);
  const __mmask16 zero = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_EQ_OQ);
  const __mmask16 ok = _kor_mask16(zero, in_bound);
  *good = *good && ok == 0xffff;
  return _mm256_maskz_mov_epi16(ok, codes);
}

// Four rows of 8 words, `stride` words apart.
SZ_INLINE __m512i load_rows(const int16_t* src, size_t stride) {
  __m512i rows = _mm512_castsi128_si512(load128(src));
  rows = _mm512_inserti32x4(rows, load128(src + stride), 1);
  rows = _mm512_inserti32x4(rows, load128(src + 2 * stride), 2);
  return _mm512_inserti32x4(rows, load128(src + 3 * stride), 3);
}

// Transposes four squares of 8 x 8 words side by side: word j of a quarter of a[i] becomes word i of
// that quarter of a[j].
SZ_INLINE void transpose_quarters(__m512i* a) {
  __m512i b[8];
  for (int i = 0; i < 4; i++) {
    b[i] = _mm512_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
    b[i + 4] = _mm512_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
  }
  __m512i c[8];
  for (int i = 0; i < 4; i++) {
    c[2 * i] = _mm512_unpacklo_epi32(b[2 * i], b[2 * i + 1]);
    c[2 * i + 1] = _mm512_unpackhi_epi32(b[2 * i], b[2 * i + 1]);
  }
  // c: columns 0 1, 2 3 of rows 0-3; of rows 4-7; columns 4 5, 6 7 of rows 0-3; of rows 4-7.
  for (int i = 0; i < 4; i++) {
    const int from = i / 2 * 4 + i % 2;
    a[2 * i] = _mm512_unpacklo_epi64(c[from], c[from + 2]);
    a[2 * i + 1] = _mm512_unpackhi_epi64(c[from], c[from + 2]);
  }
}

// rows[lane][t] to codes[t * kLanes + lane].
SZ_INLINE void to_steps(const int16_t (*rows)[kBlockSteps], int16_t* codes) {
  for (int half = 0; half < 2; half++) {
    __m512i a[8];
    for (int i = 0; i < 8; i++) a[i] = load_rows(rows[i] + 8 * half, 8 * kBlockSteps);
    transpose_quarters(a);
    for (int t = 0; t < 8; t++) store512(codes + (8 * half + t) * kLanes, a[t]);
  }
}

// Where to_lanes() leaves a lane.
constexpr int row_of(int lane) {
  return lane % 8 * 4 + lane / 8;
}

// codes[t * kLanes + lane] to rows[row_of(lane)][t].
SZ_INLINE void to_lanes(const int16_t* codes, int16_t (*rows)[kBlockSteps]) {
  __m512i early[8], late[8];  // of the steps
  for (int t = 0; t < 8; t++) {
    early[t] = load512(codes + t * kLanes);
    late[t] = load512(codes + (t + 8) * kLanes);
  }
  transpose_quarters(early);
  transpose_quarters(late);
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i last = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  for (int i = 0; i < 8; i++) {
    store512(rows[row_of(i)], _mm512_permutex2var_epi64(early[i], first, late[i]));
    store512(rows[row_of(i + 16)], _mm512_permutex2var_epi64(early[i], last, late[i]));
  }
}

// Values from here that are fetched early, to be read or written: hardware does not follow so many
// lanes.
constexpr int kAhead = 4 * kBlockSteps;

// Whether codes are beyond kSureCodes, by the largest magnitudes; that of -2^15 is 2^15.
SZ_INLINE bool is_sure(__m256i magnitudes) {
  return _mm256_cmpgt_epu16_mask(magnitudes, _mm256_set1_epi16(kSureCodes)) == 0;
}

template <Signs kSign, bool kDither>
bool quantize_block(const Block<const float>& block, const Grid<float>& grid, int16_t* codes) {
  const LanesOf<const float> lanes(block, grid.seed);
  __m512 dither = _mm512_setzero_ps();
  alignas(64) int16_t rows[kLanes][kBlockSteps];
  __m256i most = _mm256_setzero_si256();
  for (int lane = 0; lane < kLanes; lane++) {
    const float* src = lanes.values(lane);
    _mm_prefetch(reinterpret_cast<const char*>(src + kAhead), _MM_HINT_T0);
    if constexpr (kDither) dither = dither16(lanes.key(lane), kUp<kSign>);
    const __m256i row = quantize16<kSign, kDither>(_mm512_loadu_ps(src), dither, grid);
    most = _mm256_max_epu16(most, _mm256_abs_epi16(row));
    store256(rows[lane], row);
  }
  bool good = true;
  if (!is_sure(most)) {
    for (int lane = 0; lane < kLanes; lane++) {
      const __m256i row = load256(rows[lane]);
      if (is_sure(_mm256_abs_epi16(row))) continue;
      const float* src = lanes.values(lane);
      if constexpr (kDither) dither = dither16(lanes.key(lane), 0);
      store256(rows[lane], check16<kSign, kDither>(_mm512_loadu_ps(src), dither, grid, row, &good));
    }
  }
  to_steps(rows, codes);
  return good;
}

// By what becomes of signs, and dither.
constexpr bool (*kQuantize[kSigns][2])(const Block<const float>&, const Grid<float>&, int16_t*) = {
    {quantize_block<Signs::Lost, false>, quantize_block<Signs::Lost, true>},
    {quantize_block<Signs::Kept, false>, quantize_block<Signs::Kept, true>},
    {quantize_block<Signs::Scaled, false>, quantize_block<Signs::Scaled, true>},
};

bool quantize_floats(const Block<const float>& block, const Grid<float>& grid, int16_t* codes) {
  return kQuantize[static_cast<int>(grid.signs)][grid.dither](block, grid, codes);
}

template <Signs kSign, bool kDither>
void dequantize_block(const int16_t* codes, const Grid<float>& grid, const Block<float>& block) {
  const LanesOf<float> lanes(block, grid.seed);
  const __m512 bases = _mm512_loadu_ps(grid.base), slopes = _mm512_loadu_ps(grid.slope);
  __m512 dither = _mm512_setzero_ps();
  alignas(64) int16_t rows[kLanes][kBlockSteps];
  to_lanes(codes, rows);
  for (int lane = 0; lane < kLanes; lane++) {
    float* dst = lanes.values(lane);
    _mm_prefetch(reinterpret_cast<const char*>(dst + kAhead), _MM_HINT_T0);
    if constexpr (kDither) {
      dither = dither16(lanes.key(lane), 0);
    }
    const __m256i row = load256(rows[row_of(lane)]);
    const __m512i code = _mm512_cvtepi16_epi32(row);
    __m512 y;
    if (are_small(row)) {
      y = _mm512_permutexvar_ps(code, bases);
      if constexpr (kDither) {
        y = _mm512_add_ps(y, _mm512_mul_ps(dither, _mm512_permutexvar_ps(code, slopes)));
      }
    } else {
      y = dequantize16<kSign, kDither>(code, dither, grid);
    }
    _mm512_storeu_ps(dst, y);
  }
}

constexpr void (*kDequantize[kSigns][2])(const int16_t*, const Grid<float>&,
                                         const Block<float>&) = {
    {dequantize_block<Signs::Lost, false>, dequantize_block<Signs::Lost, true>},
    {dequantize_block<Signs::Kept, false>, dequantize_block<Signs::Kept, true>},
    {dequantize_block<Signs::Scaled, false>, dequantize_block<Signs::Scaled, true>},
};

void dequantize_floats(const int16_t* codes, const Grid<float>& grid, const Block<float>& block) {
  kDequantize[static_cast<int>(grid.signs)][grid.dither](codes, grid, block);
}

// --- statistics ---

struct VectorSums {
  __m512d sum, squares;
  __m256 min, max;

  explicit VectorSums(const LaneSums<float>& s)
      : sum(_mm512_loadu_pd(s.sum)),
        squares(_mm512_loadu_pd(s.squares)),
        min(_mm256_loadu_ps(s.min)),
        max(_mm256_loadu_ps(s.max)) {}

  void store(LaneSums<float>* s) const {
    _mm512_storeu_pd(s->sum, sum);
    _mm512_storeu_pd(s->squares, squares);
    _mm256_storeu_ps(s->min, min);
    _mm256_storeu_ps(s->max, max);
  }
};

void accumulate_floats(const float* src, size_t count, LaneSums<float>* sums) {
  constexpr int kNotFinite = 0x99;  // NaNs of both kinds and infinities of both signs
  VectorSums v(*sums);
  uint64_t nonzeros = 0;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 x = _mm256_loadu_ps(src + i);
    if (_mm256_fpclass_ps_mask(x, kNotFinite) != 0) {
      v.store(sums);
      for (size_t lane = 0; lane < 8; lane++) accumulate_one(src[i + lane], lane, sums);
      v = VectorSums(*sums);
      continue;
    }
    const __mmask8 nonzero = _mm256_cmp_ps_mask(x, _mm256_setzero_ps(), _CMP_NEQ_UQ);
    nonzeros += static_cast<uint64_t>(_mm_popcnt_u32(nonzero));
    const __m512d wide = _mm512_cvtps_pd(x);
    v.sum = _mm512_add_pd(v.sum, wide);
    v.squares = _mm512_add_pd(v.squares, _mm512_mul_pd(wide, wide));
    v.min = _mm256_min_ps(x, v.min);
    v.max = _mm256_max_ps(x, v.max);
  }
  v.store(sums);
  sums->nonzeros += nonzeros;
  for (; i < count; i++) accumulate_one(src[i], i % 8, sums);
}

}  // namespace

const ValueKernels<float> kAvx512Float32 = {quantize_floats, dequantize_floats, accumulate_floats};
const ValueKernels<double> kAvx512Float64 = {quantize<double>, dequantize<double>,
                                             accumulate<double>};

}  // namespace sz

#endif  // SZ_HAS_WIDE_KERNELS
