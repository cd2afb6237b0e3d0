// The entropy coder with AVX-512, 16 lanes a vector. Included like lanes.inl, after it and avx512.inl.

constexpr int kVectors = kLanes / 16;  // of 32-bit states

// The lanes below `active`.
__mmask32 first_lanes(int active) {
  return active == kLanes ? ~0u : (1u << active) - 1;
}

// Of a vector of states.
SZ_INLINE __mmask16 lanes_of(__mmask32 lanes, int vector) {
  return static_cast<__mmask16>(lanes >> (16 * vector));
}

// Loads one by one: the processors' gathers are slow, or made slow by what mends their leaks.
template <typename Index>
SZ_INLINE __m256i look_up8(const uint32_t* table, const Index* i) {
  const auto entry = [&](int k) { return static_cast<int>(table[i[k]]); };
  return _mm256_setr_epi32(entry(0), entry(1), entry(2), entry(3), entry(4), entry(5), entry(6),
                           entry(7));
}
template <typename Index>
SZ_INLINE __m512i look_up(const uint32_t* table, const Index* i) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(look_up8(table, i)), look_up8(table, i + 8), 1);
}

// The even numbers: from the n-th on, they shuffle the low words of the first n of 16 numbers to the
// end (indices count modulo 32).
struct Evens {
  uint16_t from[32];
};
constexpr Evens make_evens() {
  Evens evens = {};
  for (int i = 0; i < 32; i++) evens.from[i] = static_cast<uint16_t>(2 * i);
  return evens;
}
constexpr Evens kEvens = make_evens();

// One step of rANS in 16 lanes: states too large for their symbols give up a word first.
SZ_INLINE uint16_t* encode_vector(__m512i entry, __mmask16 active, __m512i* state,
                                  uint16_t* words) {
  const __m512i frequency = _mm512_and_si512(entry, _mm512_set1_epi32(kFrequencyMask));
  const __m512i start = _mm512_srli_epi32(entry, 16);
  const __m512i limit = _mm512_slli_epi32(frequency, 31 - kProbabilityBits);
  const __mmask16 full = _mm512_mask_cmpge_epu32_mask(active, *state, limit);
  const int given = _mm_popcnt_u32(full);
  const __m512i chosen = _mm512_maskz_compress_epi32(full, *state);
  const __m512i order = _mm512_castsi256_si512(load256(kEvens.from + given));
  store256(words - 16, _mm512_castsi512_si256(_mm512_permutexvar_epi16(order, chosen)));
  const __m512i x = _mm512_mask_srli_epi32(*state, full, *state, 16);
  // The quotient is below 2^21. Rounded down twice, its float is right or one too small.
  constexpr int kDown = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  const __m512i quotient = _mm512_cvttps_epi32(_mm512_div_round_ps(
      _mm512_cvt_roundepi32_ps(x, kDown), _mm512_cvtepi32_ps(frequency), kDown));
  const __m512i rest = _mm512_sub_epi32(x, _mm512_mullo_epi32(quotient, frequency));
  const __mmask16 small = _mm512_cmpge_epi32_mask(rest, frequency);
  const __m512i next = _mm512_add_epi32(_mm512_slli_epi32(quotient, kProbabilityBits),
                                        _mm512_add_epi32(rest, start));
  const __m512i more = _mm512_sub_epi32(_mm512_set1_epi32(kProbabilityOne), frequency);
  *state = _mm512_mask_mov_epi32(*state, active, _mm512_mask_add_epi32(next, small, next, more));
  return words - given;
}

// One step back in 16 lanes; gives the entries. `begin` is where the lanes' contexts begin in the
// table. The words must be readable for 32 bytes.
SZ_INLINE __m512i decode_vector(const uint32_t* slots, __m512i begin, __mmask16 active,
                                __m512i* state, const uint8_t** words) {
  const __m512i x = *state;
  alignas(64) uint32_t slot[16];
  store512(slot,
           _mm512_or_si512(begin, _mm512_and_si512(x, _mm512_set1_epi32(kProbabilityOne - 1))));
  keep_stored(slot);
  const __m512i entry = look_up(slots, slot);
  const __m512i frequency =
      _mm512_and_si512(_mm512_srli_epi32(entry, kSymbolBits), _mm512_set1_epi32(kFrequencyMask));
  const __m512i next =
      _mm512_add_epi32(_mm512_mullo_epi32(frequency, _mm512_srli_epi32(x, kProbabilityBits)),
                       _mm512_srli_epi32(entry, kOffsetAt));
  const __mmask16 short_of =
      _mm512_mask_cmplt_epu32_mask(active, next, _mm512_set1_epi32(kLeastState));
  const __m512i taken = _mm512_maskz_expand_epi32(short_of, _mm512_cvtepu16_epi32(load256(*words)));
  *words += 2 * _mm_popcnt_u32(short_of);
  const __m512i longer = _mm512_mask_slli_epi32(next, short_of, next, 16);
  *state = _mm512_mask_or_epi32(x, active, longer, taken);
  return entry;
}
