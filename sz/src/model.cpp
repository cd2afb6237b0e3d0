#include "model.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace sz {
namespace {

constexpr int kTrialSteps = 256;  // of the sample that chooses the neighbourhood
constexpr int kLeastSteps = 512;  // of the sample that the frequencies are fitted to ...
constexpr int kMostSteps = 8192;
constexpr int kSampledShare = 16;  // ... which is one value in so many, between these limits
constexpr int kPieceSteps = 512;   // samples are taken in pieces of about so many,
constexpr int kPieceRows = 8;      // so many rows where a plane is larger: most have one above

constexpr int kCodes = 256;          // those counted for classes: -128 to 127, the ends included
constexpr int kFewestInside = 7;     // eighths of the codes that must have a class of their own
constexpr uint64_t kPairsGain = 50;  // pairs may take one more byte in so many: they are faster

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

// About `values`, in whole planes and 0.618 of one, rounded to `aligned`: lanes then begin all over a
// plane. The whole planes share no factor with usual numbers of channels, which would otherwise be
// sampled unevenly. 0 if there is no such number.
uint64_t spread_stride(uint64_t values, uint64_t plane, uint64_t aligned) {
  uint64_t planes = values / plane;
  while (planes > 1 && (planes % 2 == 0 || planes % 3 == 0 || planes % 5 == 0 || planes % 7 == 0)) {
    planes--;
  }
  const uint64_t more = aligned < plane ? plane * 618 / 1000 / aligned * aligned : 0;
  return planes == 0 ? 0 : planes * plane + more;
}

// About `steps` a lane in whole planes or rows, from all over the array; all of it if that is not
// much more. `plane` is the true size of one, 0 if it is unknown.
Sample plan_sample(const Layout& layout, uint64_t plane, int steps) {
  const bool has_rows = layout.neighbourhood == kLeftAndUp;
  const auto piece = static_cast<uint64_t>(std::min(steps, kPieceSteps));
  const uint64_t row = has_rows ? layout.row : 1;
  const uint64_t rows_of_plane = plane > 0 ? plane / row : kPieceRows;
  const bool whole_planes = has_rows && plane > 0 && plane <= 2 * piece && plane <= layout.steps;
  uint64_t unit = row;
  if (whole_planes)
    unit = plane;
  else if (has_rows)
    unit = std::min({row * kPieceRows, row * rows_of_plane, uint64_t{layout.steps}});
  const uint64_t lane_steps = std::max(piece / unit, uint64_t{1}) * unit;
  const uint64_t aligned = whole_planes ? plane : row;
  uint64_t stride = layout.count / kLanes * 31 / 32 / aligned * aligned;
  if (plane > 0) stride = std::max(spread_stride(stride, plane, aligned), lane_steps);
  const bool small =
      layout.chunks() == 1 && layout.lattice_of(layout.values_of(0)).steps <= 2 * steps;
  if (small || stride < 2 * lane_steps) return whole_array(layout);
  const auto pieces = static_cast<uint64_t>(std::max(steps / static_cast<int>(lane_steps), 1));
  return {static_cast<int>(pieces),
          stride / pieces / aligned * aligned,
          stride,
          layout.lattice(static_cast<int>(lane_steps)),
          {kLanes, 0}};
}

// Calls use(sample) whenever the sampler has left a piece of it.
template <typename Use>
void each_piece(const Sample& sample, Sampler* sampler, const Use& use) {
  for (int i = 0; i < sample.pieces; i++) {
    sampler->sample(static_cast<uint64_t>(i) * sample.piece_stride, sample.lane_stride,
                    sample.lattice.steps);
    use();
  }
}

void count_codes(const int16_t* codes, const Sample& sample, uint32_t* counts) {
  for (int step = 0; step < sample.lattice.steps; step++) {
    const int active = sample.lanes.full + (step < sample.lanes.partial ? 1 : 0);
    for (int lane = 0; lane < active; lane++) {
      const int code = codes[step * kLanes + lane];
      counts[std::clamp(code + kCodes / 2, 0, kCodes - 1)]++;
    }
  }
}

// Of the whole array, in bytes.
uint64_t expected_size(const uint32_t* counts, const Frequencies& frequencies, uint64_t count) {
  uint8_t description[kLargestSingleDescription];
  const uint64_t fixed =
      static_cast<uint64_t>(write_frequencies(frequencies, description) - description);
  uint64_t sampled = 0;
  for (int i = 0; i < kCounts; i++) sampled += counts[i];
  const uint64_t coded = coded_size(counts, frequencies) / (8 * 256);
  return fixed + coded * count / std::max<uint64_t>(sampled, 1);
}

// Adds the pairs of a piece, but for the first row and what has it as its corner: pieces have more
// of those than planes have.
void count_pairs(const uint16_t* indices, const Sample& sample, int distance, uint32_t* counts) {
  const int steps = sample.lattice.steps;
  const int begin = distance + 2 < steps / 4 ? (distance + 2) / 2 * 2 : 0;
  for (int step = begin; step + 1 < steps; step += 2) {
    const int active = sample.lanes.full + (step + 1 < sample.lanes.partial ? 1 : 0);
    const uint16_t* here = indices + step / 2 * kLanes;
    for (int lane = 0; lane < active; lane++) counts[here[lane]]++;
  }
}

struct Trial {
  Layout layout;
  uint64_t size;  // expected of the stream, in bytes
};

// Tries the neighbourhoods, and counts codes on the way.
Trial choose_layout(const Kernels& kernels, uint64_t count, uint64_t row, uint64_t rows,
                    Sampler* sampler, const int16_t* codes, uint32_t* code_counts) {
  uint32_t counts[kCounts];
  Trial best = {make_layout(count, row, rows, kAlone), ~uint64_t{0}};
  for (int n = 0; n < kNeighbourhoods; n++) {
    const Layout layout = make_layout(count, row, rows, static_cast<Neighbourhood>(n));
    if (layout.neighbourhood != n) continue;
    const Sample sample = plan_sample(layout, row * rows, kTrialSteps);
    std::memset(counts, 0, sizeof(counts));
    each_piece(sample, sampler, [&] {
      count_codes(codes, sample, code_counts);
      kernels.coder.count(codes, sample.lattice, sample.lanes, counts);
    });
    Frequencies frequencies;
    fit_frequencies(counts, &frequencies);
    const uint64_t size = expected_size(counts, frequencies, count);
    if (size < best.size) best = {layout, size};
  }
  return best;
}

bool has_few_outside(const uint32_t* code_counts, const Classes& classes) {
  uint64_t inside = 0, total = 0;
  for (int i = 0; i < kCodes; i++) {
    const int above = i - kCodes / 2 - classes.least;
    total += code_counts[i];
    if (above >= 0 && above < kOutside) inside += code_counts[i];
  }
  return 8 * inside >= kFewestInside * total;
}

// Fits pairs to a sample; returns the expected size of the stream, in bytes.
uint64_t fit_pairs_to(const Kernels& kernels, const Layout& layout, const Sample& sample,
                      Sampler* sampler, const SampleScratch& scratch, const Classes& classes,
                      PairModel* model) {
  const PairLattice lattice = layout.pairs_of(sample.lattice);
  std::vector<uint32_t> counts(kPairTable);
  each_piece(sample, sampler, [&] {
    kernels.pairs.index(scratch.codes, lattice, classes, scratch.pairs);
    count_pairs(scratch.pairs->indices, sample, lattice.distance, counts.data());
  });
  fit_pairs(counts.data(), classes, model);
  std::vector<uint16_t> frequencies(kPairTable);
  pair_frequencies(*model, frequencies.data());
  uint64_t pairs = 0;
  for (const uint32_t n : counts) pairs += n;
  const uint64_t coded = coded_pairs(counts.data(), frequencies.data()) / (8 * 256);
  uint8_t description[kLargestPairDescription];
  const auto fixed = static_cast<uint64_t>(write_pairs(*model, description) - description);
  return fixed + coded * layout.count / std::max<uint64_t>(2 * pairs, 1);
}

}  // namespace

uint8_t* write_code_model(const CodeModel& codes, uint8_t* dst) {
  return codes.pairs ? write_pairs(codes.pair, dst) : write_frequencies(codes.single, dst);
}

bool read_code_model(Reader* reader, CodeModel* codes) {
  return codes->pairs ? read_pairs(reader, &codes->pair) : read_frequencies(reader, &codes->single);
}

void Model::set_encoder(const CodeModel& codes) {
  pairs = codes.pairs;
  classes = codes.pair.classes;
  if (!pairs) return make_encoder_table(codes.single, encoder);
  uint16_t frequencies[kPairTable];
  pair_frequencies(codes.pair, frequencies);
  make_pair_encoder(frequencies, encoder);
}

void Model::set_decoder(const CodeModel& codes) {
  pairs = codes.pairs;
  classes = codes.pair.classes;
  if (!pairs) return make_decoder_table(codes.single, decoder);
  uint16_t frequencies[kPairTable];
  pair_frequencies(codes.pair, frequencies);
  make_pair_decoder(frequencies, decoder);
}

Layout fit_model(const Kernels& kernels, uint64_t count, uint64_t row, uint64_t rows,
                 Sampler* sampler, const SampleScratch& scratch, CodeModel* codes) {
  uint32_t code_counts[kCodes] = {};
  const Trial trial = choose_layout(kernels, count, row, rows, sampler, scratch.codes, code_counts);
  const auto share =
      static_cast<int>(std::min<uint64_t>(count / (kLanes * kSampledShare), kMostSteps));
  const Sample sample = plan_sample(trial.layout, row * rows, std::max(share, kLeastSteps));
  const Classes classes = fit_classes(code_counts);
  uint64_t pairs_size = ~uint64_t{0};
  if (has_few_outside(code_counts, classes)) {
    pairs_size =
        fit_pairs_to(kernels, trial.layout, sample, sampler, scratch, classes, &codes->pair);
  }
  codes->pairs = pairs_size <= trial.size;
  if (codes->pairs) return trial.layout;
  // The trial may have flattered single codes.
  uint32_t counts[kCounts] = {};
  each_piece(sample, sampler,
             [&] { kernels.coder.count(scratch.codes, sample.lattice, sample.lanes, counts); });
  fit_frequencies(counts, &codes->single);
  const uint64_t single_size = expected_size(counts, codes->single, count);
  codes->pairs = pairs_size <= single_size + single_size / kPairsGain;
  return trial.layout;
}

}  // namespace sz
