// The kernels for processors with AVX2 and BMI2. Built with those instructions: nothing outside
// this file may be defined here, and no header with inline functions is included.
#include "kernels.hpp"

#ifdef SZ_HAS_AVX2

#include <immintrin.h>

#include <cstring>

namespace sz {
namespace {

#include "huffman_kernels.inl"

// For each mask byte, the byte shuffle that moves the chosen 16-bit lanes to the front, and the
// one that moves them back (clearing the others).
struct ShuffleTables {
  alignas(64) uint8_t compact16[256][16];
  alignas(64) uint8_t expand16[256][16];
  alignas(64) uint32_t compact32[256][8];
  alignas(64) uint32_t expand32[256][8];
};

constexpr ShuffleTables make_tables() {
  ShuffleTables t = {};
  for (int m = 0; m < 256; m++) {
    int k = 0;
    for (int i = 0; i < 8; i++) {
      const bool set = (m >> i & 1) != 0;
      t.expand16[m][2 * i] = static_cast<uint8_t>(set ? 2 * k : 0x80);
      t.expand16[m][2 * i + 1] = static_cast<uint8_t>(set ? 2 * k + 1 : 0x80);
      t.expand32[m][i] = static_cast<uint32_t>(set ? k : 0);
      if (!set) continue;
      t.compact16[m][2 * k] = static_cast<uint8_t>(2 * i);
      t.compact16[m][2 * k + 1] = static_cast<uint8_t>(2 * i + 1);
      t.compact32[m][k] = static_cast<uint32_t>(i);
      k++;
    }
  }
  return t;
}

constexpr ShuffleTables kTables = make_tables();

__m256i load256(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
void store256(void* p, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), v);
}
__m128i load128(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
void store128(void* p, __m128i v) {
  _mm_storeu_si128(static_cast<__m128i*>(p), v);
}
uint64_t load64(const void* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
void store64(void* p, uint64_t v) {
  std::memcpy(p, &v, 8);
}

__m256 sign_bits() {
  return _mm256_set1_ps(-0.0f);
}
__m256 absolute(__m256 x) {
  return _mm256_andnot_ps(sign_bits(), x);
}

// --- quantiser ---

struct GridVectors {
  __m256 step, inverse, threshold, limit;
};

GridVectors spread(const Grid& grid) {
  return {_mm256_set1_ps(grid.step), _mm256_set1_ps(grid.inverse), _mm256_set1_ps(grid.threshold),
          _mm256_set1_ps(kCodeLimit)};
}

// Codes of 8 values as int32, 0 where they may not be used; `good` keeps its ones only where they
// may.
template <bool kKeepSign>
__m256i quantize8(__m256 x, const GridVectors& g, __m256* good) {
  const __m256 scaled = _mm256_mul_ps(x, g.inverse);
  __m256i q;
  __m256 y;
  if constexpr (kKeepSign) {
    const __m256 sign = _mm256_and_ps(x, sign_bits());
    __m256 magnitude = _mm256_ceil_ps(_mm256_andnot_ps(sign_bits(), scaled));
    magnitude = _mm256_max_ps(magnitude, _mm256_set1_ps(1.0f));
    const __m256i nonzero_bits = _mm256_slli_epi32(_mm256_castps_si256(x), 1);
    const __m256 zero =
        _mm256_castsi256_ps(_mm256_cmpeq_epi32(nonzero_bits, _mm256_setzero_si256()));
    const __m256 half = _mm256_sub_ps(magnitude, _mm256_set1_ps(0.5f));
    y = _mm256_andnot_ps(zero, _mm256_or_ps(_mm256_mul_ps(half, g.step), sign));
    q = _mm256_cvtps_epi32(_mm256_andnot_ps(zero, _mm256_or_ps(magnitude, sign)));
  } else {
    q = _mm256_cvtps_epi32(scaled);
    y = _mm256_mul_ps(_mm256_cvtepi32_ps(q), g.step);
  }
  const __m256 in_range = _mm256_cmp_ps(absolute(scaled), g.limit, _CMP_LE_OQ);
  const __m256 in_bound = _mm256_cmp_ps(absolute(_mm256_sub_ps(x, y)), g.threshold, _CMP_LE_OQ);
  const __m256 ok = _mm256_and_ps(in_range, in_bound);
  *good = _mm256_and_ps(*good, ok);
  return _mm256_and_si256(q, _mm256_castps_si256(ok));
}

template <bool kKeepSign>
int quantize_group(const float* src, const Grid& grid, uint8_t* mask, int16_t* codes,
                   bool* exceptions) {
  const GridVectors g = spread(grid);
  __m256 good = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  const __m256i zero = _mm256_setzero_si256();
  int16_t* at = codes;
  for (int i = 0; i < kGroupValues; i += 16) {
    const __m256i a = quantize8<kKeepSign>(_mm256_loadu_ps(src + i), g, &good);
    const __m256i b = quantize8<kKeepSign>(_mm256_loadu_ps(src + i + 8), g, &good);
    const __m256i q = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    const __m256i is_zero = _mm256_cmpeq_epi16(q, zero);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(is_zero), _mm256_extracti128_si256(is_zero, 1));
    const uint32_t bits = ~static_cast<uint32_t>(_mm_movemask_epi8(bytes)) & 0xffff;
    const uint32_t low = bits & 255, high = bits >> 8;
    mask[i / 8] = static_cast<uint8_t>(low);
    mask[i / 8 + 1] = static_cast<uint8_t>(high);
    store128(at, _mm_shuffle_epi8(_mm256_castsi256_si128(q), load128(kTables.compact16[low])));
    at += _mm_popcnt_u32(low);
    store128(at,
             _mm_shuffle_epi8(_mm256_extracti128_si256(q, 1), load128(kTables.compact16[high])));
    at += _mm_popcnt_u32(high);
  }
  *exceptions = _mm256_movemask_ps(good) != 255;
  return static_cast<int>(at - codes);
}

int quantize(const float* src, const Grid& grid, uint8_t* mask, int16_t* codes, bool* exceptions) {
  return grid.keep_sign ? quantize_group<true>(src, grid, mask, codes, exceptions)
                        : quantize_group<false>(src, grid, mask, codes, exceptions);
}

template <bool kKeepSign>
void dequantize_group(const int16_t* codes, const uint8_t* mask, const Grid& grid, float* dst) {
  const __m256 step = _mm256_set1_ps(grid.step);
  for (int byte = 0; byte < kGroupValues / 8; byte++) {
    const uint32_t bits = mask[byte];
    const __m128i q = _mm_shuffle_epi8(load128(codes), load128(kTables.expand16[bits]));
    codes += _mm_popcnt_u32(bits);
    __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(q));
    if constexpr (kKeepSign) {
      const __m256 sign = _mm256_and_ps(value, sign_bits());
      const __m256 not_zero = _mm256_cmp_ps(value, _mm256_setzero_ps(), _CMP_NEQ_OQ);
      const __m256 half = _mm256_and_ps(_mm256_or_ps(_mm256_set1_ps(0.5f), sign), not_zero);
      value = _mm256_sub_ps(value, half);
    }
    _mm256_storeu_ps(dst + byte * 8, _mm256_mul_ps(value, step));
  }
}

void dequantize(const int16_t* codes, const uint8_t* mask, const Grid& grid, float* dst) {
  if (grid.keep_sign) {
    dequantize_group<true>(codes, mask, grid, dst);
  } else {
    dequantize_group<false>(codes, mask, grid, dst);
  }
}

// --- transforms ---

uint32_t horizontal_sum(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(s));
}

CodeSums measure(int16_t* codes, int count) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i magnitude = _mm256_setzero_si256(), delta = magnitude, least = magnitude;
  store256(codes + count, _mm256_setzero_si256());
  for (int i = 0; i < count; i += 16) {
    const __m256i q = load256(codes + i);
    const __m256i d = _mm256_sub_epi16(q, load256(codes + i - 1));
    magnitude = _mm256_add_epi32(magnitude, _mm256_madd_epi16(_mm256_abs_epi16(q), ones));
    delta = _mm256_add_epi32(delta, _mm256_madd_epi16(_mm256_abs_epi16(d), ones));
    least = _mm256_min_epi16(least, q);
  }
  CodeSums sums = {horizontal_sum(magnitude), horizontal_sum(delta),
                   _mm256_movemask_epi8(_mm256_srai_epi16(least, 15)) != 0};
  if (count % 16 != 0) {  // the lane after the last code counted its fall to 0
    const int last = codes[count - 1];
    sums.delta -= static_cast<uint32_t>(last < 0 ? -last : last);
  }
  return sums;
}

__m256i fold(__m256i v) {
  return _mm256_xor_si256(_mm256_slli_epi16(v, 1), _mm256_srai_epi16(v, 15));
}

__m256i unfold(__m256i u) {
  const __m256i odd = _mm256_and_si256(u, _mm256_set1_epi16(1));
  return _mm256_xor_si256(_mm256_srli_epi16(u, 1), _mm256_sub_epi16(_mm256_setzero_si256(), odd));
}

void to_residuals(Transform transform, const int16_t* codes, int count, uint16_t* residuals) {
  const __m256i one = _mm256_set1_epi16(1);
  for (int i = 0; i < count; i += 16) {
    const __m256i q = load256(codes + i);
    if (transform == kPositive) {
      store256(residuals + i, _mm256_sub_epi16(q, one));
    } else if (transform == kSigned) {
      store256(residuals + i, _mm256_sub_epi16(fold(q), one));
    } else {
      store256(residuals + i, fold(_mm256_sub_epi16(q, load256(codes + i - 1))));
    }
  }
}

// Running sums of 16 differences, on top of `carry` in every lane.
__m256i prefix_sum(__m256i d, __m256i carry) {
  d = _mm256_add_epi16(d, _mm256_slli_si256(d, 2));
  d = _mm256_add_epi16(d, _mm256_slli_si256(d, 4));
  d = _mm256_add_epi16(d, _mm256_slli_si256(d, 8));
  const __m256i low_half = _mm256_permute2x128_si256(d, d, 0x08);
  const __m256i low_total = _mm256_shuffle_epi8(low_half, _mm256_set1_epi16(0x0f0e));
  return _mm256_add_epi16(_mm256_add_epi16(d, low_total), carry);
}

void from_residuals(Transform transform, const uint16_t* residuals, int count, int16_t* codes) {
  const __m256i one = _mm256_set1_epi16(1);
  __m256i carry = _mm256_set1_epi16(codes[-1]);
  for (int i = 0; i < count; i += 16) {
    const __m256i u = load256(residuals + i);
    if (transform == kPositive) {
      store256(codes + i, _mm256_add_epi16(u, one));
    } else if (transform == kSigned) {
      store256(codes + i, unfold(_mm256_add_epi16(u, one)));
    } else {
      const __m256i q = prefix_sum(unfold(u), carry);
      const __m256i high_half = _mm256_permute2x128_si256(q, q, 0x11);
      carry = _mm256_shuffle_epi8(high_half, _mm256_set1_epi16(0x0f0e));
      store256(codes + i, q);
    }
  }
}

// --- bit packing ---

uint64_t repeat8(int bits) {
  return 0x0101010101010101ull * ((1ull << bits) - 1);
}
uint64_t repeat16(int bits) {
  return 0x0001000100010001ull * ((1ull << bits) - 1);
}

// Packs the low `shift` bits of 8 residuals into `shift` bytes (may write 16).
void pack_low8(const uint16_t* residuals, int shift, uint8_t* low) {
  if (shift <= 8) {
    const __m128i bytes = _mm_and_si128(load128(residuals), _mm_set1_epi16(255));
    const auto word = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_packus_epi16(bytes, bytes)));
    store64(low, _pext_u64(word, repeat8(shift)));
    return;
  }
  const uint64_t a = _pext_u64(load64(residuals), repeat16(shift));
  const uint64_t b = _pext_u64(load64(residuals + 4), repeat16(shift));
  store64(low, a | b << (4 * shift));
  store64(low + 8, b >> (64 - 4 * shift));
}

__m128i unpack_low8(const uint8_t* low, int shift) {
  if (shift <= 8) {
    const uint64_t word = _pdep_u64(load64(low), repeat8(shift));
    return _mm_cvtepu8_epi16(_mm_cvtsi64_si128(static_cast<long long>(word)));
  }
  const uint64_t a = load64(low);
  const uint64_t b = a >> (4 * shift) | load64(low + 8) << (64 - 4 * shift);
  return _mm_set_epi64x(static_cast<long long>(_pdep_u64(b, repeat16(shift))),
                        static_cast<long long>(_pdep_u64(a, repeat16(shift))));
}

bool split(uint16_t* residuals, int count, int shift, uint8_t* symbols, uint8_t* low) {
  const __m128i by = _mm_cvtsi32_si128(shift);
  const __m128i most = _mm_set1_epi16(255);
  __m128i largest = _mm_setzero_si128();
  store128(residuals + count, largest);  // so that lanes past the last add zero bits only
  for (int i = 0; i < count; i += 8) {
    const __m128i high = _mm_min_epu16(_mm_srl_epi16(load128(residuals + i), by), most);
    largest = _mm_max_epi16(largest, high);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(symbols + i), _mm_packus_epi16(high, high));
  }
  if (shift > 0) {
    for (int i = 0; i < count; i += 8, low += shift) pack_low8(residuals + i, shift, low);
  }
  return _mm_movemask_epi8(_mm_cmpeq_epi16(largest, most)) != 0;
}

void join(const uint8_t* symbols, const uint8_t* low, int count, int shift, uint16_t* residuals) {
  const __m128i by = _mm_cvtsi32_si128(shift);
  for (int i = 0; i < count; i += 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(symbols + i));
    __m128i value = _mm_sll_epi16(_mm_cvtepu8_epi16(bytes), by);
    if (shift > 0) {
      value = _mm_or_si128(value, unpack_low8(low, shift));
      low += shift;
    }
    store128(residuals + i, value);
  }
}

void pack(const uint8_t* symbols, size_t count, int bits, uint8_t* dst) {
  const uint64_t chosen = repeat8(bits);
  size_t i = 0;
  for (; i + 8 <= count; i += 8, dst += bits) store64(dst, _pext_u64(load64(symbols + i), chosen));
  if (i == count) return;
  uint64_t word = 0;
  std::memcpy(&word, symbols + i, count - i);
  store64(dst, _pext_u64(word, chosen));
}

void unpack(const uint8_t* src, size_t count, int bits, uint8_t* symbols) {
  const uint64_t chosen = repeat8(bits);
  for (size_t i = 0; i < count; i += 8, src += bits) {
    store64(symbols + i, _pdep_u64(load64(src), chosen));
  }
}

// --- statistics ---

void accumulate_one(float x, size_t lane, LaneSums* sums) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  sums->nonzeros += bits << 1 != 0;
  if ((bits & 0x7f800000u) == 0x7f800000u) return;
  sums->sum[lane] += static_cast<double>(x);
  sums->squares[lane] += static_cast<double>(x) * static_cast<double>(x);
  sums->min[lane] = x < sums->min[lane] ? x : sums->min[lane];
  sums->max[lane] = x > sums->max[lane] ? x : sums->max[lane];
}

struct VectorSums {
  __m256d sum[2], squares[2];
  __m256 min, max;

  explicit VectorSums(const LaneSums& s)
      : sum{_mm256_loadu_pd(s.sum), _mm256_loadu_pd(s.sum + 4)},
        squares{_mm256_loadu_pd(s.squares), _mm256_loadu_pd(s.squares + 4)},
        min(_mm256_loadu_ps(s.min)),
        max(_mm256_loadu_ps(s.max)) {}

  void store(LaneSums* s) const {
    for (int half = 0; half < 2; half++) {
      _mm256_storeu_pd(s->sum + 4 * half, sum[half]);
      _mm256_storeu_pd(s->squares + 4 * half, squares[half]);
    }
    _mm256_storeu_ps(s->min, min);
    _mm256_storeu_ps(s->max, max);
  }
};

void accumulate(const float* src, size_t count, LaneSums* sums) {
  const __m256i exponent = _mm256_set1_epi32(0x7f800000);
  VectorSums v(*sums);
  uint64_t nonzeros = 0;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 x = _mm256_loadu_ps(src + i);
    const __m256i ends = _mm256_and_si256(_mm256_castps_si256(x), exponent);
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(ends, exponent)) != 0) {
      v.store(sums);
      for (size_t lane = 0; lane < 8; lane++) accumulate_one(src[i + lane], lane, sums);
      v = VectorSums(*sums);
      continue;
    }
    const __m256i magnitude = _mm256_slli_epi32(_mm256_castps_si256(x), 1);
    const __m256i zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
    nonzeros += 8 - static_cast<uint64_t>(_mm_popcnt_u32(
                        static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(zero)))));
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

// --- lossless ---

int compact(const uint32_t* src, uint8_t* mask, uint32_t* words) {
  const uint32_t* begin = words;
  for (int byte = 0; byte < kGroupValues / 8; byte++) {
    const __m256i x = load256(src + byte * 8);
    const __m256i zero = _mm256_cmpeq_epi32(x, _mm256_setzero_si256());
    const uint32_t bits =
        ~static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(zero))) & 255;
    mask[byte] = static_cast<uint8_t>(bits);
    store256(words, _mm256_permutevar8x32_epi32(x, load256(kTables.compact32[bits])));
    words += _mm_popcnt_u32(bits);
  }
  return static_cast<int>(words - begin);
}

void expand(const uint32_t* words, const uint8_t* mask, uint32_t* dst) {
  const __m256i lane_bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  for (int byte = 0; byte < kGroupValues / 8; byte++) {
    const uint32_t bits = mask[byte];
    const __m256i moved =
        _mm256_permutevar8x32_epi32(load256(words), load256(kTables.expand32[bits]));
    const __m256i spread_bits = _mm256_set1_epi32(static_cast<int>(bits));
    const __m256i chosen = _mm256_cmpeq_epi32(_mm256_and_si256(spread_bits, lane_bits), lane_bits);
    store256(dst + byte * 8, _mm256_and_si256(moved, chosen));
    words += _mm_popcnt_u32(bits);
  }
}

}  // namespace

const Kernels kAvx2Kernels = {
    quantize, dequantize, measure,        to_residuals,   from_residuals, split,   join,   pack,
    unpack,   histogram,  huffman_encode, huffman_decode, accumulate,     compact, expand,
};

}  // namespace sz

#endif  // SZ_HAS_AVX2
