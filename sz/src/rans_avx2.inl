// The entropy coder with AVX2, 8 lanes a vector. Included like lanes.inl, after it and avx2.inl.
//
// With kAll every lane takes part, else those below `active`; `vector` says which lanes are meant.

// By a mask of eight lanes.
struct Shuffles {
  // Byte shuffles of words that move those of lanes NOT in the mask to the end, in order.
  alignas(64) uint8_t to_end[256][16];
  // Which of the next words a lane in the mask takes.
  alignas(64) uint8_t rank[256][8];
};

constexpr Shuffles make_shuffles() {
  Shuffles shuffles = {};
  for (int mask = 0; mask < 256; mask++) {
    for (int i = 0; i < 16; i++) shuffles.to_end[mask][i] = 0x80;
    int to = 7;
    for (int i = 7; i >= 0; i--) {
      if ((mask >> i & 1) != 0) continue;
      shuffles.to_end[mask][2 * to] = static_cast<uint8_t>(2 * i);
      shuffles.to_end[mask][2 * to + 1] = static_cast<uint8_t>(2 * i + 1);
      to--;
    }
    int rank = 0;
    for (int i = 0; i < 8; i++) {
      shuffles.rank[mask][i] = static_cast<uint8_t>(rank);
      rank += mask >> i & 1;
    }
  }
  return shuffles;
}

constexpr Shuffles kShuffles = make_shuffles();

// Eight loads are faster than a gather where that is microcode.
template <typename Index>
SZ_INLINE __m256i look_up(const uint32_t* table, const Index* i) {
  const auto at = [&](int k) { return static_cast<int>(table[i[k]]); };
  return _mm256_setr_epi32(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
}

// The same without a way through memory, where the next step waits for it.
SZ_INLINE __m256i look_up(const uint32_t* table, __m256i index) {
  const __m128i low = _mm256_castsi256_si128(index), high = _mm256_extracti128_si256(index, 1);
  const auto a = static_cast<uint64_t>(_mm_cvtsi128_si64(low));
  const auto b = static_cast<uint64_t>(_mm_extract_epi64(low, 1));
  const auto c = static_cast<uint64_t>(_mm_cvtsi128_si64(high));
  const auto d = static_cast<uint64_t>(_mm_extract_epi64(high, 1));
  const auto first = [&](uint64_t two) { return static_cast<int>(table[two & 0xffffffff]); };
  const auto second = [&](uint64_t two) { return static_cast<int>(table[two >> 32]); };
  return _mm256_setr_epi32(first(a), second(a), first(b), second(b), first(c), second(c), first(d),
                           second(d));
}

SZ_INLINE __m256i active_mask(int active, int vector) {
  const __m256i lane =
      _mm256_add_epi32(_mm256_set1_epi32(8 * vector), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(active), lane);
}

// Of the lanes below `active`.
uint32_t active_bits(int active) {
  return active == kLanes ? ~0u : (1u << active) - 1;
}

// One step of rANS in 8 lanes: states too large for their symbols give up a word first.
template <bool kAll>
SZ_INLINE uint16_t* encode_vector(__m256i entry, int active, int vector, __m256i* state,
                                  uint16_t* words) {
  const __m256i frequency = _mm256_and_si256(entry, _mm256_set1_epi32(kFrequencyMask));
  const __m256i start = _mm256_srli_epi32(entry, 16);
  __m256i x = *state;
  // Lanes that give nothing; with some lanes, inactive ones too.
  __m256i keep = _mm256_cmpgt_epi32(frequency, _mm256_srli_epi32(x, 31 - kProbabilityBits));
  const __m256i on = kAll ? keep : active_mask(active, vector);
  if (!kAll) keep = _mm256_or_si256(keep, _mm256_andnot_si256(on, _mm256_set1_epi32(-1)));
  const auto mask = static_cast<uint32_t>(_mm256_movemask_ps(as_floats(keep)));
  const __m256i low = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words - 8),
                   _mm_shuffle_epi8(packed, load128(kShuffles.to_end[mask])));
  words += static_cast<int64_t>(_mm_popcnt_u32(mask)) - 8;
  x = _mm256_blendv_epi8(_mm256_srli_epi32(x, 16), x, keep);
  // The quotient is below 2^21. Divided a little smaller, its float is right or one too small; the
  // rest is then too large by the frequency, and the state too small by what that is short of 2^10.
  const __m256 smaller = _mm256_mul_ps(_mm256_cvtepi32_ps(x), _mm256_set1_ps(1 - 0x1p-22f));
  const __m256i quotient =
      _mm256_cvttps_epi32(_mm256_div_ps(smaller, _mm256_cvtepi32_ps(frequency)));
  const __m256i rest = _mm256_sub_epi32(x, _mm256_mullo_epi32(quotient, frequency));
  const __m256i fits = _mm256_cmpgt_epi32(frequency, rest);
  const __m256i more =
      _mm256_andnot_si256(fits, _mm256_sub_epi32(_mm256_set1_epi32(kProbabilityOne), frequency));
  const __m256i next =
      _mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(quotient, kProbabilityBits), rest),
                       _mm256_add_epi32(start, more));
  *state = kAll ? next : _mm256_blendv_epi8(*state, next, on);
  return words;
}

// One step back in 8 lanes; gives the entries. The words must be readable for 16 bytes.
template <bool kAll>
SZ_INLINE __m256i decode_vector(const uint32_t* slots, __m256i context, int active, int vector,
                                __m256i* state, const uint8_t** words) {
  const __m256i x = *state;
  const __m256i entry = look_up(
      slots, _mm256_or_si256(context, _mm256_and_si256(x, _mm256_set1_epi32(kProbabilityOne - 1))));
  const __m256i frequency =
      _mm256_and_si256(_mm256_srli_epi32(entry, kSymbolBits), _mm256_set1_epi32(kFrequencyMask));
  const __m256i next =
      _mm256_add_epi32(_mm256_mullo_epi32(frequency, _mm256_srli_epi32(x, kProbabilityBits)),
                       _mm256_srli_epi32(entry, kOffsetAt));
  // States stay below 2^31.
  __m256i short_of = _mm256_cmpgt_epi32(_mm256_set1_epi32(kLeastState), next);
  const __m256i on = kAll ? short_of : active_mask(active, vector);
  if (!kAll) short_of = _mm256_and_si256(short_of, on);
  const auto mask = static_cast<uint32_t>(_mm256_movemask_ps(as_floats(short_of)));
  const __m256i rank =
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kShuffles.rank[mask])));
  const __m256i word = _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(load128(*words)), rank);
  *words += 2 * static_cast<int64_t>(_mm_popcnt_u32(mask));
  const __m256i longer = _mm256_or_si256(_mm256_slli_epi32(next, 16), word);
  const __m256i refilled = _mm256_blendv_epi8(next, longer, short_of);
  *state = kAll ? refilled : _mm256_blendv_epi8(x, refilled, on);
  return entry;
}
