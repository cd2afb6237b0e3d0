#include "frequencies.hpp"

#include <algorithm>
#include <cstring>

#include "bit_stream.hpp"
#include "logarithm.hpp"

namespace sz {
namespace {

constexpr int kSymbols = kLargestSymbol + 1;  // but for the escape

int raw_bits_of(int symbol) {
  if (symbol == kEscape) return 16;
  return symbol <= kDirect ? 0 : 4 + (symbol - 1 - kDirect) / 2;
}

// Scales weights to sum to kProbabilityOne - 1, at least 1 where a weight is not 0; the escape gets
// the rest.
void normalise(const uint64_t* weights, uint16_t* frequencies) {
  uint64_t total = 0;
  for (int s = 0; s < kSymbols; s++) total += weights[s];
  std::memset(frequencies, 0, kAlphabet * sizeof(*frequencies));
  frequencies[kEscape] = kProbabilityOne;
  if (total == 0) return;
  constexpr int kShare = kProbabilityOne - 1;
  uint64_t before = 0;
  int sum = 0, largest = 0;
  for (int s = 0; s < kSymbols; s++) {
    if (weights[s] == 0) continue;
    const uint64_t after = before + weights[s];
    const uint64_t share = after * kShare / total - before * kShare / total;
    before = after;
    frequencies[s] = static_cast<uint16_t>(std::max<uint64_t>(share, 1));
    sum += frequencies[s];
    if (frequencies[s] > frequencies[largest]) largest = s;
  }
  // The fewer symbols share the sum, the larger the largest: it always has room for the others' 1.
  frequencies[largest] = static_cast<uint16_t>(frequencies[largest] + kShare - sum);
  frequencies[kEscape] = 1;
}

// Symbols that a context's sample lacks are let in where the other contexts let expect one.
void fit_context(const uint32_t* counts, const uint64_t* all, uint64_t all_total,
                 uint16_t* frequencies) {
  uint64_t total = 0;
  for (int s = 0; s < kSymbols; s++) total += counts[s];
  uint64_t weights[kSymbols];
  for (int s = 0; s < kSymbols; s++) {
    const bool expected = all[s] * total >= all_total;
    weights[s] = counts[s] > 0 ? 16 * uint64_t{counts[s]} : expected && all[s] > 0 ? 1 : 0;
  }
  normalise(weights, frequencies);
}

// A frequency's length in bits is written as its change from the one before; then the bits after the
// first.
void write_context(const uint16_t* frequencies, int last, BitWriter* bits) {
  int before = 0;
  for (int s = 0; s <= last; s++) {
    const int length = length_of(frequencies[s]);
    put_change(length - before, bits);
    if (length > 1) bits->put(frequencies[s] & ((1u << (length - 1)) - 1), length - 1);
    before = length;
  }
}

bool read_context(BitReader* bits, int last, uint16_t* frequencies) {
  std::memset(frequencies, 0, kAlphabet * sizeof(*frequencies));
  int before = 0, sum = 0;
  for (int s = 0; s <= last; s++) {
    int change = 0;
    if (!get_change(bits, kProbabilityBits, &change)) return false;
    const int length = before + change;
    if (length < 0 || length > kProbabilityBits) return false;
    if (length > 0) {
      frequencies[s] = static_cast<uint16_t>(1u << (length - 1) | bits->get(length - 1));
    }
    sum += frequencies[s];
    before = length;
  }
  if (!bits->good || sum >= kProbabilityOne) return false;
  frequencies[kEscape] = static_cast<uint16_t>(kProbabilityOne - sum);
  return true;
}

}  // namespace

void fit_frequencies(const uint32_t* counts, Frequencies* f) {
  uint64_t all[kSymbols] = {}, total = 0;
  for (int c = 0; c < kContexts; c++) {
    for (int s = 0; s < kSymbols; s++) all[s] += counts[c * kAlphabet + s];
  }
  for (uint64_t count : all) total += count;
  for (int c = 0; c < kContexts; c++) {
    const uint32_t* here = counts + c * kAlphabet;
    f->described[c] = std::any_of(here, here + kSymbols, [](uint32_t n) { return n > 0; });
    if (f->described[c]) {
      fit_context(here, all, total, f->of[c]);
    } else {
      normalise(all, f->of[c]);
    }
  }
}

uint64_t coded_size(const uint32_t* counts, const Frequencies& f) {
  uint64_t size = 0;
  for (int i = 0; i < kCounts; i++) {
    if (counts[i] == 0) continue;
    const int context = i / kAlphabet;
    int symbol = i % kAlphabet;
    if (f.of[context][symbol] == 0) symbol = kEscape;
    const uint32_t bits = 256 * (kProbabilityBits + raw_bits_of(symbol));
    size += uint64_t{counts[i]} * (bits - log256(f.of[context][symbol]));
  }
  return size;
}

// First all contexts together, for those without a description of their own.
uint8_t* write_frequencies(const Frequencies& f, uint8_t* dst) {
  int last = 0;
  const uint16_t* shared = nullptr;
  for (int c = 0; c < kContexts; c++) {
    for (int s = 0; s < kSymbols; s++) last = f.of[c][s] > 0 ? std::max(last, s) : last;
    if (!f.described[c]) shared = f.of[c];
  }
  *dst++ = static_cast<uint8_t>(last);
  BitWriter bits = {dst};
  bits.put(shared != nullptr ? 1 : 0, 1);
  if (shared != nullptr) write_context(shared, last, &bits);
  for (int c = 0; c < kContexts; c++) {
    if (shared != nullptr) bits.put(f.described[c] ? 1 : 0, 1);
    if (f.described[c]) write_context(f.of[c], last, &bits);
  }
  return bits.end();
}

bool read_frequencies(Reader* reader, Frequencies* f) {
  uint8_t last = 0;
  if (!reader->read(&last) || last > kLargestSymbol) return false;
  BitReader bits = {reader};
  uint16_t shared[kAlphabet];
  const bool has_shared = bits.get(1) != 0;
  if (has_shared && !read_context(&bits, last, shared)) return false;
  for (int c = 0; c < kContexts; c++) {
    f->described[c] = !has_shared || bits.get(1) != 0;
    if (!f->described[c]) {
      std::memcpy(f->of[c], shared, sizeof(shared));
    } else if (!read_context(&bits, last, f->of[c])) {
      return false;
    }
  }
  return bits.good;
}

void make_encoder_table(const Frequencies& f, uint32_t* symbols) {
  for (int c = 0; c < kContexts; c++) {
    uint32_t start = 0;
    for (int s = 0; s < kAlphabet; s++) {
      const uint32_t frequency = f.of[c][s];
      symbols[c * kAlphabet + s] = frequency == 0 ? 0 : frequency | start << 16;
      start += frequency;
    }
  }
}

void make_decoder_table(const Frequencies& f, uint32_t* slots) {
  for (int c = 0; c < kContexts; c++) {
    uint32_t* at = slots + c * kProbabilityOne;
    for (uint32_t s = 0; s < kAlphabet; s++) {
      const uint32_t frequency = f.of[c][s];
      const uint32_t entry = s | frequency << kSymbolBits;
      for (uint32_t i = 0; i < frequency; i++) *at++ = entry | i << kOffsetAt;
    }
  }
}

}  // namespace sz
