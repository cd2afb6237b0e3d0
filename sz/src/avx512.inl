// Short names for what the AVX-512 kernels do often. Included like lanes.inl, after <immintrin.h>.
// They use AVX-512 F, BW, DQ and VL, which every processor with AVX-512 has but Knights Landing.

// Small functions on registers, which must not go through memory.
#define SZ_INLINE inline __attribute__((always_inline))

inline __m512i load512(const void* src) {
  return _mm512_loadu_si512(src);
}
inline __m256i load256(const void* src) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(src));
}
inline __m128i load128(const void* src) {
  return _mm_loadu_si128(static_cast<const __m128i*>(src));
}
inline void store512(void* dst, __m512i v) {
  _mm512_storeu_si512(dst, v);
}
inline void store256(void* dst, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(dst), v);
}

// Makes the compiler load numbers of a vector that it has stored one by one, each in one operation.
// Left alone, GCC takes them out of the register, in two or three.
template <typename Array>
SZ_INLINE void keep_stored(Array& array) {
  __asm__("" : "+m"(array));
}
