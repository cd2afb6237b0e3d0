// Huffman coding of bytes and the histogram before it, in portable C++. Included by each kernel
// file inside its own anonymous namespace, so that each is built with that file's instructions.

void histogram(const uint8_t* src, size_t count, uint32_t* counts) {
  // Four tables: runs of one symbol would otherwise wait on the same counter.
  uint32_t part[4][256];
  std::memset(part, 0, sizeof(part));
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t word;
    std::memcpy(&word, src + i, 8);
    part[0][word & 255]++;
    part[1][word >> 8 & 255]++;
    part[2][word >> 16 & 255]++;
    part[3][word >> 24 & 255]++;
    part[0][word >> 32 & 255]++;
    part[1][word >> 40 & 255]++;
    part[2][word >> 48 & 255]++;
    part[3][word >> 56]++;
  }
  for (; i < count; i++) part[0][src[i]]++;
  for (int s = 0; s < 256; s++) counts[s] = part[0][s] + part[1][s] + part[2][s] + part[3][s];
}

uint8_t* huffman_encode(const uint8_t* src, size_t count, const uint32_t* codes, uint8_t* dst) {
  uint64_t bits = 0;
  unsigned fill = 0;  // at most 7 before each round, and 7 + 5 * 11 after it
  size_t i = 0;
  const auto append = [&](uint8_t symbol) {
    const uint32_t entry = codes[symbol];
    bits |= static_cast<uint64_t>(entry & 0xffff) << fill;
    fill += entry >> 16;
  };
  const auto flush = [&] {
    std::memcpy(dst, &bits, 8);
    dst += fill >> 3;
    bits >>= fill & ~7u;
    fill &= 7;
  };
  for (; i + 5 <= count; i += 5) {
    append(src[i]);
    append(src[i + 1]);
    append(src[i + 2]);
    append(src[i + 3]);
    append(src[i + 4]);
    flush();
  }
  for (; i < count; i++) {
    append(src[i]);
    flush();
  }
  if (fill > 0) *dst++ = static_cast<uint8_t>(bits);
  return dst;
}

// Decodes the symbols from `at` to `end` of one stream, byte-wise near its end. `position` in bits.
bool huffman_decode_tail(const HuffmanInput& in, const uint16_t* table, uint64_t position,
                         uint8_t* at, const uint8_t* end) {
  while (at < end) {
    const size_t byte = position >> 3;
    if (byte >= in.size) return false;
    uint64_t word = 0;
    std::memcpy(&word, in.begin + byte, in.size - byte < 8 ? in.size - byte : 8);
    const uint16_t entry = table[word >> (position & 7) & (kHuffmanTable - 1)];
    *at++ = static_cast<uint8_t>(entry >> 8);
    position += entry & 63;
  }
  return (position + 7) >> 3 == in.size;
}

bool huffman_decode(const HuffmanInput* streams, const uint16_t* table, uint8_t* dst,
                    size_t count) {
  const size_t quarter = (count + 3) / 4;
  uint8_t* at[4];
  uint8_t* end[4];
  uint64_t position[4] = {0, 0, 0, 0};
  size_t rounds = quarter;
  for (int s = 0; s < 4; s++) {
    const size_t first = s * quarter < count ? s * quarter : count;
    const size_t last = first + quarter < count ? first + quarter : count;
    at[s] = dst + first;
    end[s] = dst + last;
    rounds = last - first < rounds ? last - first : rounds;
    if (streams[s].size < 8) rounds = 0;
  }
  // A round of five symbols takes at most 55 bits: a load of 64 gives at least 57. Its load must
  // stay inside the stream, which a full round can check once for as many rounds as surely fit.
  rounds /= 5;
  while (rounds > 0) {
    size_t safe = rounds;
    for (int s = 0; s < 4; s++) {
      const uint64_t last_load = (streams[s].size - 8) * 8 + 7;
      if (position[s] > last_load) {
        safe = 0;
        break;
      }
      const size_t fits = (last_load - position[s]) / 55 + 1;
      safe = fits < safe ? fits : safe;
    }
    if (safe == 0) break;
    rounds -= safe;
    uint64_t p0 = position[0], p1 = position[1], p2 = position[2], p3 = position[3];
    uint8_t *a0 = at[0], *a1 = at[1], *a2 = at[2], *a3 = at[3];
    const uint8_t *b0 = streams[0].begin, *b1 = streams[1].begin;
    const uint8_t *b2 = streams[2].begin, *b3 = streams[3].begin;
    for (; safe > 0; safe--) {
      uint64_t w0, w1, w2, w3;
      std::memcpy(&w0, b0 + (p0 >> 3), 8);
      std::memcpy(&w1, b1 + (p1 >> 3), 8);
      std::memcpy(&w2, b2 + (p2 >> 3), 8);
      std::memcpy(&w3, b3 + (p3 >> 3), 8);
      w0 >>= p0 & 7;
      w1 >>= p1 & 7;
      w2 >>= p2 & 7;
      w3 >>= p3 & 7;
      const auto step = [table](uint64_t& word, uint64_t& bit, uint8_t* out) {
        const uint32_t entry = table[word & (kHuffmanTable - 1)];
        word >>= entry & 63;
        bit += entry & 63;
        *out = static_cast<uint8_t>(entry >> 8);
      };
      for (int j = 0; j < 5; j++) {
        step(w0, p0, a0 + j);
        step(w1, p1, a1 + j);
        step(w2, p2, a2 + j);
        step(w3, p3, a3 + j);
      }
      a0 += 5;
      a1 += 5;
      a2 += 5;
      a3 += 5;
    }
    position[0] = p0;
    position[1] = p1;
    position[2] = p2;
    position[3] = p3;
    at[0] = a0;
    at[1] = a1;
    at[2] = a2;
    at[3] = a3;
  }
  bool good = true;
  for (int s = 0; s < 4; s++) {
    good = huffman_decode_tail(streams[s], table, position[s], at[s], end[s]) && good;
  }
  return good;
}
