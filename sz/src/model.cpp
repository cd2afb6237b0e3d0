#include "model.hpp"

#include <algorithm>
#include <cstring>

namespace sz {
namespace {

constexpr int kTrialSteps = 256;  // of the sample that chooses the neighbourhood
constexpr int kLeastSteps = 512;  // of the sample that the frequencies are fitted to ...
constexpr int kMostSteps = 2048;
constexpr int kSampledShare = 16;  // ... which is one value in so many, between these limits
constexpr int kPieceSteps = 512;   // samples are taken in pieces of about so many,
constexpr int kPieceRows = 8;      // so many rows where a plane is larger: most have one above

// `pieces` times a chunk with gaps between its lanes. Piece i begins at value i * piece_stride.
struct Sample {
  int pieces;
  uint64_t piece_stride;
  uint64_t lane_stride;
  Lattice lattice;
  Lanes lanes;
};

Sample whole_array(const Layout& layout) {
  const int values = layout.values_of(0);
  const Lattice lattice = layout.lattice_of(values);
  return {1, 0, static_cast<uint64_t>(lattice.steps), lattice, layout.lanes_of(values)};
}

bool shares_factor(uint64_t n) {
  return n % 2 == 0 || n % 3 == 0 || n % 5 == 0 || n % 7 == 0;
}

// About `steps` a lane in whole planes or rows, from all over the array; all of it if that is not
// much more. The strides, in planes, share no factor with usual numbers of channels, which would
// otherwise be sampled unevenly.
Sample plan_sample(const Layout& layout, int steps) {
  const bool has_rows = layout.neighbourhood == kLeftAndUp;
  const uint64_t plane = has_rows ? uint64_t{layout.row} * layout.rows : 0;
  const auto piece = static_cast<uint64_t>(std::min(steps, kPieceSteps));
  uint64_t unit = 1;
  if (plane > 0) unit = plane;
  if (has_rows && (plane == 0 || plane > 2 * piece)) {
    unit = std::min<uint64_t>(uint64_t{layout.row} * kPieceRows, layout.steps);
  }
  const uint64_t lane_steps = std::max(piece / unit, uint64_t{1}) * unit;
  const uint64_t aligned = plane > 0 ? plane : has_rows ? layout.row : 1;
  uint64_t stride = layout.count / kLanes * 31 / 32 / aligned;
  while (stride > 1 && shares_factor(stride)) stride--;
  const bool small =
      layout.chunks() == 1 && layout.lattice_of(layout.values_of(0)).steps <= 2 * steps;
  if (small || stride * aligned < 2 * lane_steps) return whole_array(layout);
  const auto pieces = static_cast<uint64_t>(std::max(steps / static_cast<int>(lane_steps), 1));
  return {static_cast<int>(pieces),
          stride / pieces * aligned,
          stride * aligned,
          layout.lattice(static_cast<int>(lane_steps)),
          {kLanes, 0}};
}

void count_sample(const Kernels& kernels, const Sample& sample, Sampler* sampler,
                  const int16_t* codes, uint32_t* counts) {
  std::memset(counts, 0, kCounts * sizeof(*counts));
  for (int i = 0; i < sample.pieces; i++) {
    sampler->sample(static_cast<uint64_t>(i) * sample.piece_stride, sample.lane_stride,
                    sample.lattice.steps);
    kernels.coder.count(codes, sample.lattice, sample.lanes, counts);
  }
}

// Of the whole array, in bytes.
uint64_t expected_size(const uint32_t* counts, uint64_t count) {
  Frequencies frequencies;
  fit_frequencies(counts, &frequencies);
  uint8_t description[kLargestDescription];
  const uint64_t fixed =
      static_cast<uint64_t>(write_frequencies(frequencies, description) - description);
  uint64_t sampled = 0;
  for (int i = 0; i < kCounts; i++) sampled += counts[i];
  const uint64_t coded = coded_size(counts, frequencies) / (8 * 256);
  return fixed + coded * count / std::max<uint64_t>(sampled, 1);
}

}  // namespace

Layout fit_model(const Kernels& kernels, uint64_t count, uint64_t row, uint64_t rows,
                 Sampler* sampler, const int16_t* codes, Frequencies* frequencies) {
  uint32_t counts[kCounts];
  uint64_t least = ~uint64_t{0};
  Layout chosen = make_layout(count, row, rows, kAlone);
  for (int n = 0; n < kNeighbourhoods; n++) {
    const Layout layout = make_layout(count, row, rows, static_cast<Neighbourhood>(n));
    if (layout.neighbourhood != n) continue;
    count_sample(kernels, plan_sample(layout, kTrialSteps), sampler, codes, counts);
    const uint64_t size = expected_size(counts, count);
    if (size < least) {
      least = size;
      chosen = layout;
    }
  }
  const auto share =
      static_cast<int>(std::min<uint64_t>(count / (kLanes * kSampledShare), kMostSteps));
  const int steps = std::max(share, kLeastSteps);
  count_sample(kernels, plan_sample(chosen, steps), sampler, codes, counts);
  fit_frequencies(counts, frequencies);
  return chosen;
}

}  // namespace sz
