// What all chunks of a stream share: the layout and the coder's frequencies.
#pragma once

#include <cstdint>
#include <vector>

#include "bytes.hpp"
#include "frequencies.hpp"
#include "layout.hpp"

namespace sz {

struct Model {
  Layout layout;
  uint32_t encoder[kCounts];
  uint32_t decoder[kContexts * kProbabilityOne];

  void set_encoder(const Frequencies& frequencies) { make_encoder_table(frequencies, encoder); }
  void set_decoder(const Frequencies& frequencies) { make_decoder_table(frequencies, decoder); }
};

// Quantises a sample: lane l has `steps` values from begin + l * stride on.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual void sample(uint64_t begin, uint64_t stride, int steps) = 0;
};

// Chooses the neighbourhood that codes a sample best, and fits frequencies to a larger sample.
// `row` and `rows` as in make_layout(). `codes` is where the sampler leaves its codes.
Layout fit_model(const Kernels& kernels, uint64_t count, uint64_t row, uint64_t rows,
                 Sampler* sampler, const int16_t* codes, Frequencies* frequencies);

}  // namespace sz
