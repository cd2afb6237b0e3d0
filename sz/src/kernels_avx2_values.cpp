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
// dither_of() of 16 values in a row.
SZ_INLINE void dither16(uint64_t first, uint32_t seed, __m256* dither) {
  const auto low = static_cast<uint32_t>(first);
  if (low > 0xffffffffu - 15) {
    float values[16];
    for (uint64_t i = 0; i < 16; i++) values[i] = dither_of(first + i, seed);
    dither[0] = _mm256_loadu_ps(values);
    dither[1] = _mm256_loadu_ps(values + 8);
    return;
  }
  const uint32_t key = static_cast<uint32_t>(first >> 32) * 0x9e3779b9u ^ seed;
  for (int i = 0; i < 2; i++) {
    __m256i h = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(low) + 8 * i),
                                 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    h = _mm256_xor_si256(h, _mm256_set1_epi32(static_cast<int>(key)));
    h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 16)),
                           _mm256_set1_epi32(static_cast<int>(0x85ebca6bu)));
    h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 13)),
                           _mm256_set1_epi32(static_cast<int>(0xc2b2ae35u)));
    h = _mm256_xor_si256(h, _mm256_srli_epi32(h, 16));
    h = _mm256_sub_epi32(_mm256_srli_epi32(h, 8), _mm256_set1_epi32(1 << 23));
    dither[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(h), _mm256_set1_ps(0x1p-24f));
  }
}

// One of two numbers for each value, by the sign of `x`. Both are the same unless signs are scaled.
template <Signs kSign>
SZ_INLINE __m256 by_sign(__m256 x, float positive, float negative) {
  if constexpr (kSign != Signs::Scaled) return _mm256_set1_ps(positive);
  return _mm256_blendv_ps(_mm256_set1_ps(positive), _mm256_set1_ps(negative), x);
}

template <Signs kSign, bool kDither>
SZ_INLINE __m256 dequantize8(__m256i code, __m256 dither, __m256 step) {
  const __m256 q = _mm256_cvtepi32_ps(code);
  const __m256 zero = as_floats(_mm256_cmpeq_epi32(code, _mm256_setzero_si256()));
  if constexpr (kSign == Signs::Lost) {
    if constexpr (!kDither) return _mm256_mul_ps(q, step);
    const __m256i positive = _mm256_cmpgt_epi32(code, _mm256_setzero_si256());
    const __m256 base = _mm256_cvtepi32_ps(_mm256_add_epi32(code, positive));
    return _mm256_andnot_ps(zero, _mm256_mul_ps(_mm256_add_ps(base, dither), step));
  }
  const __m256 sign = _mm256_and_ps(q, sign_bits());
  const __m256 magnitude = absolute(q);
  __m256 y;
  if constexpr (!kDither) {
    y = _mm256_mul_ps(_mm256_sub_ps(magnitude, _mm256_set1_ps(0.5f)), step);
  } else {
    const __m256 base = _mm256_sub_ps(magnitude, _mm256_set1_ps(1.5f));
    if constexpr (kSign == Signs::Scaled) {  // with 1, negative values are as without dither
      dither = _mm256_blendv_ps(dither, _mm256_set1_ps(1.0f), q);
    }
    y = _mm256_mul_ps(_mm256_add_ps(base, dither), step);
    const __m256 smallest = _mm256_set1_ps(Float<float>::kSmallest);
    const __m256 crossing = _mm256_cmp_ps(magnitude, _mm256_set1_ps(1.0f), _CMP_EQ_OQ);
    __m256 small = _mm256_or_ps(crossing, _mm256_cmp_ps(y, smallest, _CMP_NGT_UQ));
    if constexpr (kSign == Signs::Scaled) small = _mm256_andnot_ps(q, small);  // the sign bits
    y = _mm256_blendv_ps(y, smallest, small);
  }
  return _mm256_andnot_ps(zero, _mm256_or_ps(y, sign));
}

// Codes of 8 values as int32, 0 where they may not be used; `good` keeps its ones only where they
// may. Without kCheck nothing is decoded: the codes are right where `good` keeps its ones.
template <Signs kSign, bool kDither, bool kCheck>
SZ_INLINE __m256i quantize8(__m256 x, __m256 dither, const Grid<float>& grid, __m256* good) {
  const __m256i one = _mm256_set1_epi32(1);
  const Scale<float>&positive = grid.positive, &negative = grid.negative;
  const __m256 scaled = _mm256_mul_ps(x, by_sign<kSign>(x, positive.inverse, negative.inverse));
  const __m256 zero = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_EQ_OQ);
  __m256i code;
  if constexpr (kSign == Signs::Lost && !kDither) {
    code = _mm256_cvtps_epi32(scaled);
  } else if constexpr (kSign == Signs::Lost) {
    code = _mm256_cvtps_epi32(_mm256_sub_ps(scaled, dither));
    const __m256i below = _mm256_srai_epi32(code, 31);
    code = _mm256_add_epi32(code, _mm256_add_epi32(below, one));
  } else {
    __m256i magnitude;
    if constexpr (!kDither) {
      magnitude = _mm256_cvtps_epi32(_mm256_ceil_ps(absolute(scaled)));
      magnitude = _mm256_max_epi32(magnitude, one);
    } else {
      const __m256 size = absolute(scaled);
      __m256 moved = _mm256_sub_ps(_mm256_add_ps(size, _mm256_set1_ps(0.5f)), dither);
      if constexpr (kSign == Signs::Scaled) {
        const __m256 less = _mm256_sub_ps(size, _mm256_set1_ps(1.0f));  // exact from 1/2
        moved = _mm256_blendv_ps(moved, _mm256_ceil_ps(less), x);
      }
      magnitude = _mm256_cvtps_epi32(moved);
      magnitude = _mm256_add_epi32(_mm256_max_epi32(magnitude, _mm256_setzero_si256()), one);
    }
    const __m256i below = _mm256_srai_epi32(as_integers(x), 31);
    code = _mm256_sub_epi32(_mm256_xor_si256(magnitude, below), below);
  }
  if constexpr (!kCheck) {
    const __m256 sure = _mm256_set1_ps(kSureCodes);
    *good = _mm256_and_ps(*good, _mm256_cmp_ps(absolute(scaled), sure, _CMP_LE_OQ));
    return _mm256_andnot_si256(as_integers(zero), code);
  }
  const __m256 step = by_sign<kSign>(x, positive.step, negative.step);
  const __m256 y = dequantize8<kSign, kDither>(code, dither, step);
  const __m256 limit = _mm256_set1_ps(static_cast<float>(kCodeLimit));
  const __m256 in_range = _mm256_cmp_ps(absolute(scaled), limit, _CMP_LE_OQ);
  const __m256 threshold = by_sign<kSign>(x, positive.threshold, negative.threshold);
  const __m256 in_bound = _mm256_cmp_ps(absolute(_mm256_sub_ps(x, y)), threshold, _CMP_LE_OQ);
  const __m256 ok = _mm256_or_ps(zero, _mm256_and_ps(in_range, in_bound));
  *good = _mm256_and_ps(*good, ok);
  return _mm256_and_si256(code, as_integers(_mm256_andnot_ps(zero, ok)));
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

// Values from here that are fetched early: hardware does not follow so many lanes.
constexpr int kAhead = 4 * kBlockSteps;

template <Signs kSign, bool kDither>
bool quantize_block(const Block<const float>& block, const Grid<float>& grid, int16_t* codes) {
  __m256 good = as_floats(_mm256_set1_epi32(-1));
  __m256 dither[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  alignas(32) int16_t rows[kLanes][kBlockSteps];
  for (int lane = 0; lane < kLanes; lane++) {
    const float* src = block.values + lane * block.stride;
    _mm_prefetch(reinterpret_cast<const char*>(src + kAhead), _MM_HINT_T0);
    if constexpr (kDither) {
      dither16(block.first + static_cast<uint64_t>(lane) * block.index_stride, grid.seed, dither);
    }
    const __m256 x[2] = {_mm256_loadu_ps(src), _mm256_loadu_ps(src + 8)};
    __m256 sure = as_floats(_mm256_set1_epi32(-1));
    __m256i a = quantize8<kSign, kDither, false>(x[0], dither[0], grid, &sure);
    __m256i b = quantize8<kSign, kDither, false>(x[1], dither[1], grid, &sure);
    if (_mm256_movemask_ps(sure) != 255) {
      a = quantize8<kSign, kDither, true>(x[0], dither[0], grid, &good);
      b = quantize8<kSign, kDither, true>(x[1], dither[1], grid, &good);
    }
    store256(rows[lane], _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8));
  }
  for (int half = 0; half < kHalves; half++) {
    transpose(rows[16 * half], kBlockSteps, codes + 16 * half, kLanes);
  }
  return _mm256_movemask_ps(good) == 255;
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
  const float positive = grid.positive.step, negative = grid.negative.step;
  __m256 dither[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  alignas(32) int16_t rows[kLanes][kBlockSteps];
  for (int half = 0; half < kHalves; half++) {
    transpose(codes + 16 * half, kLanes, rows[16 * half], kBlockSteps);
  }
  for (int lane = 0; lane < kLanes; lane++) {
    float* dst = block.values + lane * block.stride;
    if constexpr (kDither) {
      dither16(block.first + static_cast<uint64_t>(lane) * block.index_stride, grid.seed, dither);
    }
    const __m256i a = _mm256_cvtepi16_epi32(load128(rows[lane]));
    const __m256i b = _mm256_cvtepi16_epi32(load128(rows[lane] + 8));
    const __m256 step_a = by_sign<kSign>(as_floats(a), positive, negative);
    const __m256 step_b = by_sign<kSign>(as_floats(b), positive, negative);
    _mm256_storeu_ps(dst, dequantize8<kSign, kDither>(a, dither[0], step_a));
    _mm256_storeu_ps(dst + 8, dequantize8<kSign, kDither>(b, dither[1], step_b));
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
