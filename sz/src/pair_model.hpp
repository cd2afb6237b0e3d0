// What a stream of pairs shares: classes and two factors of a pair's probability, from which both
// sides make the tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bytes.hpp"
#include "kernels.hpp"

namespace sz {

// Weights of a code's class; the last is of codes outside.
struct Weights {
  uint16_t of[kClasses];
};

struct PairModel {
  Classes classes;
  Weights first[kPairLevels][kPairLevels];  // by levels of the prediction and of right
  Weights second[kClasses][kPairLevels];    // by first's class and level of right
};

// 4 bytes, and 3 a weight: those of first, and of second but for codes outside.
constexpr size_t kLargestPairDescription =
    4 + 3 * kOutside * (kPairContexts + kOutside * kPairLevels);

// Classes from the counts of codes -128 to 127 (the ends included).
Classes fit_classes(const uint32_t* code_counts);
// The factors from the counts of kPairTable indices.
void fit_pairs(const uint32_t* counts, const Classes& classes, PairModel* model);
uint8_t* write_pairs(const PairModel& model, uint8_t* dst);
bool read_pairs(Reader* reader, PairModel* model);

// frequencies[context * kPairAlphabet + symbol], of a sum of kProbabilityOne in each context.
void pair_frequencies(const PairModel& model, uint16_t* frequencies);
void make_pair_encoder(const uint16_t* frequencies, uint32_t* symbols);
void make_pair_decoder(const uint16_t* frequencies, uint32_t* slots);
// Bits that pairs with these counts take, in 1/256 bit.
uint64_t coded_pairs(const uint32_t* counts, const uint16_t* frequencies);

}  // namespace sz
