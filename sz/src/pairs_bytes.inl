// What the kernels for AVX2 and AVX-512 have in common: classes and contexts of all lanes in a vector
// of bytes, and escapes. Included like lanes.inl, after it, pairs.inl and avx2.inl or avx512.inl.

// Contexts of all lanes, times what the tables of levels are: of the predicted class and of right.
// `above` is at the classes a row up; null in the first row.
SZ_INLINE __m256i pair_contexts(__m256i left, const uint8_t* above, __m256i predicted_level,
                                __m256i right_level) {
  __m256i predicted = left, right = left;
  if (above != nullptr) {
    const __m256i up = load256(above), corner = load256(above - kLanes);
    right = load256(above + kLanes);
    const __m256i least = _mm256_min_epu8(left, up), most = _mm256_max_epu8(left, up);
    const __m256i between = _mm256_min_epu8(_mm256_max_epu8(corner, least), most);
    predicted = _mm256_sub_epi8(_mm256_add_epi8(left, up), between);
  }
  return _mm256_add_epi8(_mm256_shuffle_epi8(predicted_level, predicted),
                         _mm256_shuffle_epi8(right_level, right));
}

// The level of each class, times a factor.
SZ_INLINE __m256i level_table(const Classes& classes, int factor) {
  alignas(16) uint8_t table[kClasses];
  for (int i = 0; i < kClasses; i++) table[i] = static_cast<uint8_t>(classes.level[i] * factor);
  return _mm256_broadcastsi128_si256(load128(table));
}

// Classes of a step, a byte a lane. Codes that saturate here are outside in any case.
SZ_INLINE __m256i classes_of(const int16_t* codes, __m256i least) {
  const __m256i bytes =
      _mm256_permute4x64_epi64(_mm256_packs_epi16(load256(codes), load256(codes + 16)), 0xd8);
  return _mm256_min_epu8(_mm256_sub_epi8(bytes, least), _mm256_set1_epi8(kOutside));
}

void index_pairs(const int16_t* codes, const PairLattice& lattice, const Classes& classes,
                 PairScratch* scratch) {
  uint8_t* at = scratch->classes + kLanes;
  const ptrdiff_t row = static_cast<ptrdiff_t>(lattice.distance) * kLanes;
  PlaneWalker plane = {lattice, 0};
  uint16_t* to = scratch->indices;
  const __m256i least = _mm256_set1_epi8(static_cast<char>(classes.least));
  const __m256i predicted_level = level_table(classes, kPairLevels);
  const __m256i right_level = level_table(classes, 1);
  __m256i left = _mm256_setzero_si256();
  store256(scratch->classes, left);
  for (int step = 0; step < lattice.steps; step += 2, plane.next()) {
    const __m256i first = classes_of(codes, least), second = classes_of(codes + kLanes, least);
    const __m256i symbol = _mm256_or_si256(first, _mm256_slli_epi16(second, 4));
    const __m256i context =
        pair_contexts(left, plane.on_top() ? nullptr : at - row, predicted_level, right_level);
    left = second;
    store256(at, first);
    store256(at + kLanes, second);
    const __m256i low = _mm256_unpacklo_epi8(symbol, context);
    const __m256i high = _mm256_unpackhi_epi8(symbol, context);
    store256(to, _mm256_permute2x128_si256(low, high, 0x20));
    store256(to + 16, _mm256_permute2x128_si256(low, high, 0x31));
    codes += 2 * kLanes;
    at += 2 * kLanes;
    to += kLanes;
  }
}

// Second codes past the end of a lane are 0.
void end_lanes(const int16_t* codes, const PairLattice& lattice, const Lanes& lanes, int least,
               int step, uint16_t* index) {
  for (int lane = 0; lane < kLanes; lane++) {
    const int second = class_of(second_code(codes, lattice, lanes, step, lane), least);
    index[lane] = static_cast<uint16_t>((index[lane] & ~0xf0) | second << 4);
  }
}

// Writes the raw bits of pairs that are flagged, last lane first.
__attribute__((noinline)) void put_escapes(const int16_t* codes, const PairLattice& lattice,
                                           const Lanes& lanes, int step, uint32_t flagged,
                                           int least, RawWriter* raw) {
  while (flagged != 0) {
    const int lane = 31 - __builtin_clz(flagged);
    flagged ^= 1u << lane;
    put_escaped(raw, codes[step * kLanes + lane], second_code(codes, lattice, lanes, step, lane),
                least);
  }
}

// Decodes the pairs of escaped lanes, first lane first. Their classes go to at[place(lane)].
__attribute__((noinline)) void get_escapes(int16_t* here, uint8_t* at, uint32_t lanes, int least,
                                           int (*place)(int lane), RawReader* raw) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    int pair[2];
    get_escaped(raw, least, pair);
    for (int i = 0; i < 2; i++) {
      here[lane + i * kLanes] = static_cast<int16_t>(pair[i]);
      at[place(lane) + i * kLanes] = static_cast<uint8_t>(class_of(pair[i], least));
    }
  }
}
