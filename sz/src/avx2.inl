// Short names for what the AVX2 kernels do often. Included like lanes.inl, after <immintrin.h>.

// Small functions on registers, which must not go through memory.
#define SZ_INLINE inline __attribute__((always_inline))

constexpr int kVectors = kLanes / 8;  // of 32-bit states
constexpr int kHalves = kLanes / 16;  // of 16-bit codes

inline __m256i load256(const void* src) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(src));
}
inline __m128i load128(const void* src) {
  return _mm_loadu_si128(static_cast<const __m128i*>(src));
}
inline void store256(void* dst, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(dst), v);
}

inline __m256 as_floats(__m256i x) {
  return _mm256_castsi256_ps(x);
}
inline __m256i as_integers(__m256 x) {
  return _mm256_castps_si256(x);
}
