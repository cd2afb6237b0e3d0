// Quantising, restoring and adding up values, with AVX2.
#include <cmath>
#include <cstring>

#include "kernels.hpp"

#ifdef SZ_HAS_WIDE_KERNELS

#include <immintrin.h>

namespace sz {
namespace {

#include "avx2.inl"
#include "portable_values.inl"

SZ_INLINE __m256 sign_bits() {
  return _mm256_set1_ps(-0.0f);
}
SZ_INLINE __m256 absolute(__m256 x) {
  return _mm256_andnot_ps(sign_bits(), x);
}

// dither_of() of 16 values, each plus `more`, a multiple of 2^-17 below 64.
SZ_INLINE void dither16(uint32_t key, float more, __m256* dither) {
  const __m256i steps = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                           _mm256_set1_epi32(static_cast<int>(kPairStep)));
  __m256i h = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(key)), steps);
  h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 16)),
                         _mm256_set1_epi32(0x7feb352d));
  h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 15)),
                         _mm256_set1_epi32(static_cast<int>(0x846ca68bu)));
  h = _mm256_permute4x64_epi64(_mm256_xor_si256(h, _mm256_srli_epi32(h, 16)), 0xd8);
  // A half below these bits is 128 + half / 2^16.
  const __m256i exponent = _mm256_set1_epi16(0x4300);
  const __m256 less = _mm256_set1_ps(128 - 0x1p-17f - more);
  dither[0] = _mm256_sub_ps(as_floats(_mm256_unpacklo_epi16(h, exponent)), less);
  dither[1] = _mm256_sub_ps(as_floats(_mm256_unpackhi_epi16(h, exponent)), less);
}

// One of two numbers for each value, by the sign of `x`. Both are the same unless signs are scaled.
template <Signs kSign>
SZ_INLINE __m256 by_sign(__m256 x, float positive, float negative) {
  if constexpr (kSign != Signs::Scaled) return _mm256_set1_ps(positive);
  return _mm256_blendv_ps(_mm256_set1_ps(positive), _mm256_set1_ps(negative), x);
}

// Eight codes of a table that are looked up by their last three bits, or, where signs are kept, by
// those of their magnitude.
template <Signs kSign>
struct SmallCodes {
  static constexpr int kLeast = kSign == Signs::Lost ? -4 : kSign == Signs::Scaled ? -2 : -7;
  static constexpr int kMost = kSign == Signs::Lost ? 3 : kSign == Signs::Scaled ? 5 : 7;

  // `table` is one of a grid's.
  static __m256 load(const float* table) {
    const __m256 from_zero = _mm256_loadu_ps(table), below = _mm256_loadu_ps(table + 8);
    if constexpr (kSign == Signs::Lost) return _mm256_blend_ps(from_zero, below, 0xf0);
    if constexpr (kSign == Signs::Scaled) return _mm256_blend_ps(from_zero, below, 0xc0);
    return from_zero;
  }
  // Whether 16 codes are in the table.
  static bool has(__m256i codes) {
    const __m256i over = _mm256_cmpgt_epi16(codes, _mm256_set1_epi16(kMost));
    const __m256i under = _mm256_cmpgt_epi16(_mm256_set1_epi16(kLeast), codes);
    const __m256i out = _mm256_or_si256(over, under);
    return _mm256_testz_si256(out, out) != 0;
  }
};

// Values of 8 small codes.
template <Signs kSign, bool kDither>
SZ_INLINE __m256 look_up8(__m256i code, __m256 dither, __m256 base, __m256 slope) {
  const __m256i key = kSign == Signs::Kept ? _mm256_abs_epi32(code) : code;
  __m256 y = _mm256_permutevar8x32_ps(base, key);
  if constexpr (kDither) {
    y = _mm256_add_ps(y, _mm256_mul_ps(dither, _mm256_permutevar8x32_ps(slope, key)));
  }
  if constexpr (kSign != Signs::Kept) return y;
  return _mm256_xor_ps(y, _mm256_and_ps(as_floats(code), sign_bits()));
}

// Values of any 8 codes.
template <Signs kSign, bool kDither>
SZ_INLINE __m256 dequantize8(__m256i code, __m256 dither, const Grid<float>& grid) {
  const __m256 q = _mm256_cvtepi32_ps(code);
  const __m256 step = by_sign<kSign>(as_floats(code), grid.positive.step, grid.negative.step);
  if constexpr (kSign == Signs::Lost && !kDither) return _mm256_mul_ps(q, step);
  const __m256 zero = as_floats(_mm256_cmpeq_epi32(code, _mm256_setzero_si256()));
  const __m256 sign = _mm256_and_ps(q, sign_bits());
  const __m256 magnitude = absolute(q), half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1);
  __m256 y;
  if constexpr (kSign == Signs::Lost) {
    const __m256 base = _mm256_mul_ps(_mm256_sub_ps(magnitude, half), step);
    y = _mm256_sub_ps(_mm256_or_ps(base, sign), _mm256_mul_ps(dither, step));
  } else if constexpr (!kDither) {
    y = _mm256_or_ps(_mm256_mul_ps(_mm256_sub_ps(magnitude, half), step), sign);
  } else {
    __m256 less = one, crossing = _mm256_cmp_ps(magnitude, one, _CMP_EQ_OQ);
    if constexpr (kSign == Signs::Scaled) {  // negative values have no dither
      less = _mm256_blendv_ps(one, half, q);
      crossing = _mm256_andnot_ps(q, crossing);
      dither = _mm256_blendv_ps(dither, _mm256_setzero_ps(), q);
    }
    const __m256 base = _mm256_mul_ps(_mm256_sub_ps(magnitude, less), step);
    y = _mm256_sub_ps(base, _mm256_mul_ps(dither, step));
    y = _mm256_blendv_ps(y, _mm256_set1_ps(Float<float>::kSmallest), crossing);
    y = _mm256_or_ps(y, sign);
  }
  return _mm256_andnot_ps(zero, y);
}

// What to add to the dither in quantise8(), so that truncating does the rest.
template <Signs kSign>
constexpr float kUp = kSign == Signs::Lost ? 0 : 1.5f;

SZ_INLINE __m256 is_zero(__m256 x) {
  return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_EQ_OQ);
}

// Codes of 8 values as int32: beyond kSureCodes, or not those, where they may miss the bound.
template <Signs kSign, bool kDither>
SZ_INLINE __m256i quantize8(__m256 x, __m256 up, const Grid<float>& grid) {
  const __m256i one = _mm256_set1_epi32(1);
  const __m256 scaled =
      _mm256_mul_ps(x, by_sign<kSign>(x, grid.positive.inverse, grid.negative.inverse));
  __m256i code;
  if constexpr (kSign == Signs::Lost && !kDither) {
    code = _mm256_cvtps_epi32(scaled);
  } else if constexpr (kSign == Signs::Lost) {
    code = _mm256_cvtps_epi32(_mm256_floor_ps(_mm256_add_ps(scaled, up)));
    code = _mm256_add_epi32(code, _mm256_add_epi32(_mm256_srai_epi32(code, 31), one));
  } else {
    if constexpr (!kDither) up = _mm256_set1_ps(1);
    if constexpr (kDither && kSign == Signs::Scaled) {
      up = _mm256_blendv_ps(up, _mm256_set1_ps(1), x);
    }
    code = _mm256_cvttps_epi32(_mm256_add_ps(absolute(scaled), up));
    code = _mm256_sign_epi32(code, as_integers(x));
  }
  return _mm256_andnot_si256(as_integers(is_zero(x)), code);
}

// Zeros in place of codes that miss the bound; then `good` loses its ones there.
template <Signs kSign, bool kDither>
SZ_INLINE __m256i check8(__m256 x, __m256 dither, const Grid<float>& grid, __m256i code,
                         __m256* good) {
  const Scale<float>&positive = grid.positive, &negative = grid.negative;
  const __m256 scaled = _mm256_mul_ps(x, by_sign<kSign>(x, positive.inverse, negative.inverse));
  const __m256 limit = _mm256_set1_ps(static_cast<float>(kCodeLimit));
  const __m256 in_range = _mm256_cmp_ps(absolute(scaled), limit, _CMP_LE_OQ);
  const __m256 y = dequantize8<kSign, kDither>(code, dither, grid);
  const __m256 threshold = by_sign<kSign>(x, positive.threshold, negative.threshold);
  const __m256 in_bound = _mm256_cmp_ps(absolute(_mm256_sub_ps(x, y)), threshold, _CMP_LE_OQ);
  const __m256 ok = _mm256_or_ps(is_zero(x), _mm256_and_ps(in_range, in_bound));
  *good = _mm256_and_ps(*good, ok);
  return _mm256_and_si256(code, as_integers(ok));
}

// Transposes 16 rows of 16 words, `from` and `to` words apart.
SZ_INLINE void transpose(const int16_t* src, size_t from, int16_t* dst, size_t to) {
  for (int half = 0; half < 2; half++) {
    __m256i a[8], b[8];
    for (size_t i = 0; i < 8; i++) {
      a[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load128(src + i * from + 8 * half)),
                                     load128(src + (i + 8) * from + 8 * half), 1);
    }
    for (int i = 0; i < 4; i++) {
      b[i] = _mm256_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
      b[i + 4] = _mm256_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
      a[2 * i] = _mm256_unpacklo_epi32(b[2 * i], b[2 * i + 1]);
      a[2 * i + 1] = _mm256_unpackhi_epi32(b[2 * i], b[2 * i + 1]);
    }
    // a: columns 0 1, 2 3 of rows 0-3; of rows 4-7; columns 4 5, 6 7 of rows 0-3; of rows 4-7.
    for (int i = 0; i < 2; i++) {
      int16_t* out = dst + static_cast<size_t>(8 * half + 4 * i) * to;
      const __m256i* c = a + 4 * i;
      store256(out, _mm256_unpacklo_epi64(c[0], c[2]));
      store256(out + to, _mm256_unpackhi_epi64(c[0], c[2]));
      store256(out + 2 * to, _mm256_unpacklo_epi64(c[1], c[3]));
      store256(out + 3 * to, _mm256_unpackhi_epi64(c[1], c[3]));
    }
  }
}

// Values from here that are fetched early, to be read or written: hardware does not follow so many
// lanes.
constexpr int kAhead = 4 * kBlockSteps;

// 16 codes in order, from two halves.
SZ_INLINE __m256i pack16(const __m256i* code) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(code[0], code[1]), 0xd8);
}

template <Signs kSign, bool kDither>
SZ_INLINE __m256i quantize_row(const float* src, uint32_t key, const Grid<float>& grid) {
  __m256 up[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  if constexpr (kDither) dither16(key, kUp<kSign>, up);
  __m256i code[2];
  for (int i = 0; i < 2; i++) {
    code[i] = quantize8<kSign, kDither>(_mm256_loadu_ps(src + 8 * i), up[i], grid);
  }
  return pack16(code);
}

// Checks the codes of a row, large ones among them; false if there are some that may not be used.
template <Signs kSign, bool kDither>
bool check_row(const float* src, uint32_t key, const Grid<float>& grid, int16_t* row) {
  __m256 dither[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  if constexpr (kDither) dither16(key, 0, dither);
  __m256 good = as_floats(_mm256_set1_epi32(-1));
  __m256i code[2];
  for (int i = 0; i < 2; i++) {
    const __m256i before = _mm256_cvtepi16_epi32(load128(row + 8 * i));
    code[i] = check8<kSign, kDither>(_mm256_loadu_ps(src + 8 * i), dither[i], grid, before, &good);
  }
  store256(row, pack16(code));
  return _mm256_movemask_ps(good) == 255;
}

// Whether codes are beyond kSureCodes, by the largest magnitudes; that of -2^15 is 2^15.
SZ_INLINE bool is_sure(__m256i magnitudes) {
  const __m256i sure = _mm256_set1_epi16(kSureCodes);
  const __m256i over = _mm256_subs_epu16(magnitudes, sure);
  return _mm256_testz_si256(over, over) != 0;
}

template <Signs kSign, bool kDither>
bool quantize_block(const Block<const float>& block, const Grid<float>& grid, int16_t* codes) {
  const LanesOf<const float> lanes(block, grid.seed);
  alignas(32) int16_t rows[kLanes][kBlockSteps];
  __m256i most = _mm256_setzero_si256();
  for (int lane = 0; lane < kLanes; lane++) {
    const float* src = lanes.values(lane);
    _mm_prefetch(reinterpret_cast<const char*>(src + kAhead), _MM_HINT_T0);
    const __m256i row = quantize_row<kSign, kDither>(src, lanes.key(lane), grid);
    most = _mm256_max_epu16(most, _mm256_abs_epi16(row));
    store256(rows[lane], row);
  }
  bool good = true;
  if (!is_sure(most)) {
    for (int lane = 0; lane < kLanes; lane++) {
      if (is_sure(_mm256_abs_epi16(load256(rows[lane])))) continue;
      const float* src = lanes.values(lane);
      good = check_row<kSign, kDither>(src, lanes.key(lane), grid, rows[lane]) && good;
    }
  }
  for (int half = 0; half < kHalves; half++) {
    transpose(rows[16 * half], kBlockSteps, codes + 16 * half, kLanes);
  }
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
  using Small = SmallCodes<kSign>;
  const LanesOf<float> lanes(block, grid.seed);
  const __m256 base = Small::load(grid.base), slope = Small::load(grid.slope);
  __m256 dither[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  alignas(32) int16_t rows[kLanes][kBlockSteps];
  for (int half = 0; half < kHalves; half++) {
    transpose(codes + 16 * half, kLanes, rows[16 * half], kBlockSteps);
  }
  for (int lane = 0; lane < kLanes; lane++) {
    float* dst = lanes.values(lane);
    _mm_prefetch(reinterpret_cast<const char*>(dst + kAhead), _MM_HINT_T0);
    if constexpr (kDither) {
      dither16(lanes.key(lane), 0, dither);
    }
    const __m256i low = _mm256_cvtepi16_epi32(load128(rows[lane]));
    const __m256i high = _mm256_cvtepi16_epi32(load128(rows[lane] + 8));
    if (Small::has(load256(rows[lane]))) {
      _mm256_storeu_ps(dst, look_up8<kSign, kDither>(low, dither[0], base, slope));
      _mm256_storeu_ps(dst + 8, look_up8<kSign, kDither>(high, dither[1], base, slope));
    } else {
      _mm256_storeu_ps(dst, dequantize8<kSign, kDither>(low, dither[0], grid));
      _mm256_storeu_ps(dst + 8, dequantize8<kSign, kDither>(high, dither[1], grid));
    }
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
  __m256d sum[2], squares[2];
  __m256 min, max;

  explicit VectorSums(const LaneSums<float>& s)
      : sum{_mm256_loadu_pd(s.sum), _mm256_loadu_pd(s.sum + 4)},
        squares{_mm256_loadu_pd(s.squares), _mm256_loadu_pd(s.squares + 4)},
        min(_mm256_loadu_ps(s.min)),
        max(_mm256_loadu_ps(s.max)) {}

  void store(LaneSums<float>* s) const {
    for (int half = 0; half < 2; half++) {
      _mm256_storeu_pd(s->sum + 4 * half, sum[half]);
      _mm256_storeu_pd(s->squares + 4 * half, squares[half]);
    }
    _mm256_storeu_ps(s->min, min);
    _mm256_storeu_ps(s->max, max);
  }
};

void accumulate_floats(const float* src, size_t count, LaneSums<float>* sums) {
  const __m256i exponent = _mm256_set1_epi32(0x7f800000);
  VectorSums v(*sums);
  uint64_t nonzeros = 0;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 x = _mm256_loadu_ps(src + i);
    const __m256i ends = _mm256_and_si256(as_integers(x), exponent);
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(ends, exponent)) != 0) {
      v.store(sums);
      for (size_t lane = 0; lane < 8; lane++) accumulate_one(src[i + lane], lane, sums);
      v = VectorSums(*sums);
      continue;
    }
    const __m256 zero = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_EQ_OQ);
    nonzeros +=
        8 - static_cast<uint64_t>(_mm_popcnt_u32(static_cast<uint32_t>(_mm256_movemask_ps(zero))));
    const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    v.sum[0] = _mm256_add_pd(v.sum[0], low);
    v.sum[1] = _mm256_add_pd(v.sum[1], high);
    v.squares[0] = _mm256_add_pd(v.squares[0], _mm256_mul_pd(low, low));
    v.squares[1] = _mm256_add_pd(v.squares[1], _mm256_mul_pd(high, high));
    v.min = _mm256_min_ps(x, v.min);
    v.max = _mm256_max_ps(x, v.max);
  }
  v.store(sums);
  sums->nonzeros += nonzeros;
  for (; i < count; i++) accumulate_one(src[i], i % 8, sums);
}

}  // namespace

const ValueKernels<float> kAvx2Float32 = {quantize_floats, dequantize_floats, accumulate_floats};
const ValueKernels<double> kAvx2Float64 = {quantize<double>, dequantize<double>,
                                           accumulate<double>};

}  // namespace sz

#endif  // SZ_HAS_WIDE_KERNELS
