#include "model.hpp"

#include <algorithm>
#include <cstring>

namespace sz {
namespace {

constexpr int kTrialSteps = 256;  // of the sample that chooses the neighbourhood
constexpr int kLeastSteps = 512;  // of the sample that the frequencies are fitted to ...
constexpr int kMostSteps = 2048;
constexpr int kSampledShare = 8;  // ... which is one value in so many, between these limits

// A sample is laid out like a chunk with gaps between its lanes.
struct Sample {
  uint64_t stride;
  Lattice lattice;
  Lanes lanes;
};

// About `steps` a lane, whole planes or rows; everything if that is not much more.
Sample plan_sample(const Layout& layout, int steps) {
  const int all = layout.values_of(0);
  if (layout.chunks() == 1 && layout.lattice_of(all).steps <= 2 * steps) {
    const Lattice lattice = layout.lattice_of(all);
    return {static_cast<uint64_t>(lattice.steps), lattice, layout.lanes_of(all)};
  }
  const bool rows = layout.neighbourhood == kLeftAndUp;
  int unit = rows ? static_cast<int>(layout.row) : 1;
  const int plane = rows ? static_cast<int>(layout.row * layout.rows) : 0;
  if (plane > 0 && plane <= steps) unit = plane;
  int lane_steps = std::max(steps / unit, 1) * unit;
  // Several rows, for most of them to have one above.
  if (rows) lane_steps = std::max(lane_steps, std::min(4 * unit, static_cast<int>(layout.steps)));
  const uint64_t begin_unit =
      plane > 0 ? static_cast<uint64_t>(plane) : static_cast<uint64_t>(unit);
  const uint64_t room = layout.count / kLanes;
  if (room < static_cast<uint64_t>(lane_steps)) {
    const Lattice lattice = layout.lattice_of(all);
    return {static_cast<uint64_t>(lattice.steps), lattice, layout.lanes_of(all)};
  }
  const uint64_t stride = std::max(room / begin_unit * begin_unit, uint64_t(lane_steps));
  return {stride, layout.lattice(lane_steps), {kLanes, 0}};
}

void count_sample(const Kernels& kernels, const Sample& sample, Sampler* sampler,
                  const int16_t* codes, uint32_t* counts) {
  std::memset(counts, 0, kCounts * sizeof(*counts));
  sampler->sample(sample.stride, sample.lattice.steps);
  kernels.coder.count(codes, sample.lattice, sample.lanes, counts);
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
