// What all chunks of a stream share: the layout and what the coder expects of the codes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bytes.hpp"
#include "frequencies.hpp"
#include "layout.hpp"
#include "pair_model.hpp"

namespace sz {

// What a stream describes: how often symbols are expected, of single codes or of pairs.
struct CodeModel {
  bool pairs = false;
  Frequencies single;
  PairModel pair;
};

constexpr size_t kLargestDescription = std::max(kLargestSingleDescription, kLargestPairDescription);

// Writes at most kLargestDescription bytes and returns the end.
uint8_t* write_code_model(const CodeModel& codes, uint8_t* dst);
// `codes->pairs` says which of them it is. False if it is malformed.
bool read_code_model(Reader* reader, CodeModel* codes);

// The layout and the coder's tables.
struct Model {
  Layout layout;
  bool pairs;
  Classes classes;  // if pairs
  uint32_t encoder[std::max(kCounts, kPairTable)];
  uint32_t decoder[std::max(kContexts, kPairContexts) * kProbabilityOne];

  void set_encoder(const CodeModel& codes);
  void set_decoder(const CodeModel& codes);
};

// Quantises a sample: lane l has `steps` values from begin + l * stride on.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual void sample(uint64_t begin, uint64_t stride, int steps) = 0;
};

// Where the sampler leaves its codes, and where to count pairs.
struct SampleScratch {
  const int16_t* codes;
  PairScratch* pairs;
};

// Chooses what codes a sample best: the neighbourhood, then pairs or not; and fits the model to a
// larger sample. `row` and `rows` as in make_layout().
Layout fit_model(const Kernels& kernels, uint64_t count, uint64_t row, uint64_t rows,
                 Sampler* sampler, const SampleScratch& scratch, CodeModel* codes);

}  // namespace sz
