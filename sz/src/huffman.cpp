#include "huffman.hpp"

#include <algorithm>
#include <cstring>

namespace sz {
namespace {

constexpr uint32_t kKraftOne = 1u << kHuffmanBits;  // the Kraft sum of a complete code

// Turns the ascending weights into code lengths, in place (Moffat and Katajainen, 1995): the
// array holds first weights, then parents, then depths. n >= 2.
void weights_to_depths(uint32_t* a, int n) {
  int root = 0, leaf = 0;
  const auto lightest = [&](int next) {
    if (leaf >= n || (root < next && a[root] < a[leaf])) {
      const uint32_t weight = a[root];
      a[root++] = static_cast<uint32_t>(next);
      return weight;
    }
    return a[leaf++];
  };
  for (int next = 0; next < n - 1; next++) {
    const uint32_t first = lightest(next);
    a[next] = first + lightest(next);
  }
  a[n - 2] = 0;
  for (int next = n - 3; next >= 0; next--) a[next] = a[a[next]] + 1;
  int available = 1, used = 0, at = n - 1, node = n - 2;
  for (uint32_t depth = 0; available > 0; depth++) {
    while (node >= 0 && a[node] == depth) {
      used++;
      node--;
    }
    while (available > used) {
      a[at--] = depth;
      available--;
    }
    available = 2 * used;
    used = 0;
  }
}

// Makes a complete code of depths (descending, rarest symbol first) limited to kHuffmanBits.
void limit_depths(uint32_t* depths, int n) {
  uint32_t kraft = 0;
  for (int i = 0; i < n; i++) {
    depths[i] = std::min<uint32_t>(depths[i], kHuffmanBits);
    kraft += kKraftOne >> depths[i];
  }
  // Too much: lengthen the rarest symbols that can be.
  while (kraft > kKraftOne) {
    for (int i = 0; i < n && kraft > kKraftOne; i++) {
      if (depths[i] == kHuffmanBits) continue;
      depths[i]++;
      kraft -= kKraftOne >> depths[i];
    }
  }
  // Too little: shorten the commonest symbols whose step still fits. All steps are powers of two
  // and the gap is a multiple of the smallest, so this ends with none left.
  while (kraft < kKraftOne) {
    for (int i = n - 1; i >= 0; i--) {
      const uint32_t step = kKraftOne >> depths[i];
      if (depths[i] > 1 && kraft + step <= kKraftOne) {
        depths[i]--;
        kraft += step;
      }
    }
  }
}

uint32_t reverse_bits(uint32_t code, uint32_t length) {
  uint32_t reversed = 0;
  for (uint32_t i = 0; i < length; i++) reversed |= (code >> i & 1) << (length - 1 - i);
  return reversed;
}

// First canonical code of each length: shorter codes first, symbols in order within a length.
void first_codes(const uint8_t* lengths, uint32_t* next) {
  uint32_t of_length[kHuffmanBits + 1] = {};
  for (int s = 0; s < 256; s++) of_length[lengths[s]]++;
  of_length[0] = 0;
  uint32_t code = 0;
  next[0] = 0;
  for (int length = 1; length <= kHuffmanBits; length++) {
    code = (code + of_length[length - 1]) << 1;
    next[length] = code;
  }
}

}  // namespace

void huffman_lengths(const uint32_t* counts, uint8_t* lengths) {
  uint64_t order[256];  // count << 8 | symbol: a total order, so the result is determined
  uint32_t depths[256];
  int n = 0;
  for (int s = 0; s < 256; s++) {
    if (counts[s] > 0)
      order[n++] = static_cast<uint64_t>(counts[s]) << 8 | static_cast<uint64_t>(s);
  }
  std::sort(order, order + n);
  for (int i = 0; i < n; i++) depths[i] = static_cast<uint32_t>(order[i] >> 8);
  weights_to_depths(depths, n);
  limit_depths(depths, n);
  std::memset(lengths, 0, 256);
  for (int i = 0; i < n; i++) lengths[order[i] & 255] = static_cast<uint8_t>(depths[i]);
}

void huffman_codes(const uint8_t* lengths, uint32_t* codes) {
  uint32_t next[kHuffmanBits + 1];
  first_codes(lengths, next);
  for (int s = 0; s < 256; s++) {
    const uint32_t length = lengths[s];
    codes[s] = length == 0 ? 0 : length << 16 | reverse_bits(next[length]++, length);
  }
}

bool huffman_table(const uint8_t* lengths, uint16_t* table) {
  uint32_t kraft = 0;
  for (int s = 0; s < 256; s++) {
    if (lengths[s] > kHuffmanBits) return false;
    if (lengths[s] > 0) kraft += kKraftOne >> lengths[s];
  }
  if (kraft != kKraftOne) return false;
  uint32_t codes[256];
  huffman_codes(lengths, codes);
  for (uint32_t s = 0; s < 256; s++) {
    const uint32_t length = lengths[s];
    if (length == 0) continue;
    const auto entry = static_cast<uint16_t>(s << 8 | length);
    for (uint32_t i = codes[s] & 0xffff; i < kKraftOne; i += 1u << length) table[i] = entry;
  }
  return true;
}

}  // namespace sz
