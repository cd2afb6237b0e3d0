// Every kernel in portable C++. The scalar table uses all of them, the others those that they do
// not replace. Included like model.inl, and after it.

template <typename T>
bool quantize(const Block<const T>& block, const Grid<T>& grid, int16_t* codes) {
  bool clean = true;
  for (int lane = 0; lane < kLanes; lane++) {
    const T* src = block.values + lane * block.stride;
    const uint64_t first = block.first + static_cast<uint64_t>(lane) * block.index_stride;
    for (int t = 0; t < kBlockSteps; t++) {
      const T dither = grid.dither ? static_cast<T>(dither_of(first + t, grid.seed)) : T(0);
      int code;
      clean = quantize_value(src[t], dither, grid, &code) && clean;
      codes[t * kLanes + lane] = static_cast<int16_t>(code);
    }
  }
  return clean;
}

template <typename T>
void dequantize(const int16_t* codes, const Grid<T>& grid, const Block<T>& block) {
  for (int lane = 0; lane < kLanes; lane++) {
    T* dst = block.values + lane * block.stride;
    const uint64_t first = block.first + static_cast<uint64_t>(lane) * block.index_stride;
    for (int t = 0; t < kBlockSteps; t++) {
      const T dither = grid.dither ? static_cast<T>(dither_of(first + t, grid.seed)) : T(0);
      dst[t] = dequantize_value(codes[t * kLanes + lane], dither, grid);
    }
  }
}

template <typename T>
void accumulate_one(T x, size_t lane, LaneSums<T>* sums) {
  sums->nonzeros += x != 0;  // NaN too
  if (!(x - x == 0)) return;
  sums->sum[lane] += static_cast<double>(x);
  sums->squares[lane] += static_cast<double>(x) * static_cast<double>(x);
  sums->min[lane] = x < sums->min[lane] ? x : sums->min[lane];
  sums->max[lane] = x > sums->max[lane] ? x : sums->max[lane];
}

template <typename T>
void accumulate(const T* src, size_t count, LaneSums<T>* sums) {
  for (size_t i = 0; i < count; i++) accumulate_one(src[i], i % 8, sums);
}

void count(const int16_t* codes, const Lattice& lattice, const Lanes& lanes, uint32_t* counts) {
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    const Neighbours neighbours = at.neighbours(codes);
    for (int lane = 0; lane < active_lanes(lanes, at.step); lane++) {
      const Context context = context_of(neighbours, lane);
      const Symbol symbol = symbol_of(codes[at.step * kLanes + lane], context.prediction);
      counts[context.index * kAlphabet + symbol.index]++;
    }
  }
}

// The table's entry of a code. Writes its raw bits, or an escape where the table lacks the symbol.
uint32_t entry_of(int code, const Context& context, const uint32_t* symbols, RawWriter* raw) {
  const uint32_t* table = symbols + context.index * kAlphabet;
  Symbol symbol = symbol_of(code, context.prediction);
  if (table[symbol.index] == 0) symbol = escape_of(code, context.prediction);
  if (symbol.raw_bits > 0) put_raw(raw, symbol.raw, symbol.raw_bits);
  return table[symbol.index];
}

uint16_t* encode(const int16_t* codes, const Lattice& lattice, const Lanes& lanes,
                 const uint32_t* symbols, uint32_t* states, uint16_t* words_end, RawWriter* raw) {
  uint16_t* words = words_end;
  for (Walker at = Walker::at_end(lattice); at.step >= 0; at.previous()) {
    const Neighbours neighbours = at.neighbours(codes);
    for (int lane = active_lanes(lanes, at.step) - 1; lane >= 0; lane--) {
      const Context context = context_of(neighbours, lane);
      const uint32_t entry = entry_of(codes[at.step * kLanes + lane], context, symbols, raw);
      const uint32_t frequency = entry & 0xffff, start = entry >> 16;
      uint32_t x = states[lane];
      if (x >= frequency << (31 - kProbabilityBits)) {
        *--words = static_cast<uint16_t>(x);
        x >>= 16;
      }
      states[lane] = (x / frequency << kProbabilityBits) + x % frequency + start;
    }
  }
  return words;
}

bool decode(int16_t* codes, const Lattice& lattice, const Lanes& lanes, const uint32_t* slots,
            uint32_t* states, const uint8_t* words, const uint8_t* words_end, RawReader* raw) {
  for (Walker at = Walker::at_start(lattice); at.step < lattice.steps; at.next()) {
    const Neighbours neighbours = at.neighbours(codes);
    const int active = active_lanes(lanes, at.step);
    for (int lane = 0; lane < active; lane++) {
      const Context context = context_of(neighbours, lane);
      uint32_t x = states[lane];
      const uint32_t entry =
          slots[(context.index << kProbabilityBits) + (x & (kProbabilityOne - 1))];
      x = (entry >> 6 & 0x7ff) * (x >> kProbabilityBits) + (entry >> 17);
      if (x < kLeastState) {
        if (words == words_end) return false;
        uint16_t word;
        std::memcpy(&word, words, 2);
        words += 2;
        x = x << 16 | word;
      }
      states[lane] = x;
      codes[at.step * kLanes + lane] =
          static_cast<int16_t>(code_of(static_cast<int>(entry & 63), context.prediction, raw));
    }
    for (int lane = active; lane < kLanes; lane++) codes[at.step * kLanes + lane] = 0;
  }
  if (words != words_end || raw->position != raw->end) return false;
  for (int lane = 0; lane < kLanes; lane++) {
    if (states[lane] != kLeastState) return false;
  }
  return true;
}
