// How often each symbol is expected in each context: made from counts, described in the stream, and
// turned into the coder's tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bytes.hpp"
#include "kernels.hpp"

namespace sz {

constexpr int kCounts = kContexts * kAlphabet;

// In units of 1 / kProbabilityOne; each context's sum to one, the escape's included.
struct Frequencies {
  uint16_t of[kContexts][kAlphabet];
  bool described[kContexts];  // the others have those of all contexts together
};

constexpr size_t kLargestSingleDescription = 4 + (kContexts + 1) * (kLargestSymbol + 1) * 4;

// Fits them to counts of a sample.
void fit_frequencies(const uint32_t* counts, Frequencies* frequencies);

// Bits that values with these counts take, in 1/256 bit.
uint64_t coded_size(const uint32_t* counts, const Frequencies& frequencies);

// Writes them, at most kLargestSingleDescription bytes, and returns the end.
uint8_t* write_frequencies(const Frequencies& frequencies, uint8_t* dst);
bool read_frequencies(Reader* reader, Frequencies* frequencies);

// The tables of Kernels::encode and Kernels::decode.
void make_encoder_table(const Frequencies& frequencies, uint32_t* symbols);
void make_decoder_table(const Frequencies& frequencies, uint32_t* slots);

}  // namespace sz
