#include "pair_model.hpp"

#include <algorithm>
#include <cstring>

#include "bit_stream.hpp"
#include "logarithm.hpp"

namespace sz {
namespace {

// Where classes may begin, so that their codes fit a byte, that below and that above them too.
constexpr int kLeastClassCode = -127, kMostClassCode = 112;

constexpr int kWeightBits = 10;
constexpr int kPrecision = 3;         // bits of a weight after its first
constexpr uint64_t kPriorCount = 64;  // what its parent counts for in a distribution

using Counts = uint64_t[kClasses];

// Spreads a sum of kWeightUnit over classes like the counts and the parent's shares.
constexpr uint64_t kUnit = uint64_t{1} << 32;

void share(const uint64_t* counts, const uint64_t* parent, uint64_t* shares) {
  uint64_t total = kPriorCount;
  for (int i = 0; i < kClasses; i++) total += counts[i];
  for (int i = 0; i < kClasses; i++) {
    shares[i] = (counts[i] * kUnit + kPriorCount * parent[i]) / total;
  }
}

// To few digits. The most is 2^kWeightBits - 1.
uint16_t weight_of(uint64_t part) {
  auto weight = static_cast<uint32_t>((part * ((1u << kWeightBits) - 1) + kUnit / 2) >> 32);
  const int length = weight == 0 ? 0 : 32 - __builtin_clz(weight);
  const int dropped = length - 1 - kPrecision;
  if (dropped <= 0) return static_cast<uint16_t>(weight);
  const uint32_t rounded = (weight + (1u << (dropped - 1))) >> dropped << dropped;
  return static_cast<uint16_t>(rounded >> kWeightBits != 0 ? weight >> dropped << dropped
                                                           : rounded);
}

void to_weights(const uint64_t* shares, Weights* weights) {
  for (int i = 0; i < kClasses; i++) weights->of[i] = weight_of(shares[i]);
}

// Each length as its change from the same class's in another distribution; then at most kPrecision
// digits after the first.
void write_weights(const Weights& weights, const Weights& like, int last, BitWriter* bits) {
  for (int i = 0; i <= last; i++) {
    const int length = length_of(weights.of[i]);
    put_change(length - length_of(like.of[i]), bits);
    const int digits = std::min(length - 1, kPrecision);
    if (digits > 0) {
      bits->put(weights.of[i] >> (length - 1 - digits) & ((1u << digits) - 1), digits);
    }
  }
}

bool read_weights(BitReader* bits, const Weights& like, int last, Weights* weights) {
  *weights = {};
  for (int i = 0; i <= last; i++) {
    int change = 0;
    if (!get_change(bits, kWeightBits, &change)) return false;
    const int length = length_of(like.of[i]) + change;
    if (length < 0 || length > kWeightBits) return false;
    if (length == 0) continue;
    const int digits = std::min(length - 1, kPrecision);
    weights->of[i] =
        static_cast<uint16_t>(((1u << digits) | bits->get(digits)) << (length - 1 - digits));
  }
  return bits->good;
}

// The distribution that one is described by: that of a level or class less.
const Weights kNoWeights = {};

const Weights& like_first(const PairModel& m, int predicted, int right) {
  if (right > 0) return m.first[predicted][right - 1];
  return predicted > 0 ? m.first[predicted - 1][right] : kNoWeights;
}
const Weights& like_second(const PairModel& m, int first, int right) {
  if (right > 0) return m.second[first][right - 1];
  return first > 0 ? m.second[first - 1][right] : kNoWeights;
}

// Cuts classes into kPairLevels levels such that the entropy of the level is largest.
struct Cutter {
  const uint64_t* information;  // of classes [from, to): [from * (kClasses + 1) + to]
  uint64_t best;
  int cuts[kPairLevels - 1], chosen[kPairLevels - 1];

  void cut(int level, int from, uint64_t value) {
    const uint64_t* row = information + from * (kClasses + 1);
    if (level == kPairLevels - 1) {
      value += row[kClasses];
      if (value <= best) return;
      best = value;
      std::memcpy(chosen, cuts, sizeof(cuts));
      return;
    }
    for (int to = from + 1; to <= kClasses - (kPairLevels - 1 - level); to++) {
      cuts[level] = to;
      cut(level + 1, to, value + row[to]);
    }
  }
};

}  // namespace

Classes fit_classes(const uint32_t* counts) {
  int least = -128;
  while (least < 127 && counts[least + 128] == 0) least++;
  // Move up while that takes in more codes than it leaves out.
  uint64_t inside = 0;
  for (int i = least; i < std::min(least + kOutside, 128); i++) inside += counts[i + 128];
  uint64_t most = inside;
  Classes classes = {};
  classes.least = std::clamp(least, kLeastClassCode, kMostClassCode);
  for (int l = least; l < kMostClassCode && l + kOutside < 128; l++) {
    inside += counts[l + kOutside + 128];
    inside -= counts[l + 128];
    if (inside > most) {
      most = inside;
      classes.least = l + 1;
    }
  }
  uint64_t sum[kClasses + 1] = {};
  for (int i = 0; i < kClasses; i++) {
    const int code = classes.least + i;
    sum[i + 1] = sum[i] + (i < kOutside && code < 128 ? counts[code + 128] : 0);
  }
  const uint64_t total = std::max<uint64_t>(sum[kClasses], 1);
  uint64_t information[kClasses * (kClasses + 1)] = {};
  for (int from = 0; from < kClasses; from++) {
    for (int to = from + 1; to <= kClasses; to++) {
      const uint64_t part = (sum[to] - sum[from]) * 65536 / total;
      information[from * (kClasses + 1) + to] =
          part == 0 ? 0 : part * (16 * 256 - log256(static_cast<uint32_t>(part)));
    }
  }
  Cutter cutter = {information, 0, {}, {1, 2, 3, 4, 5}};
  cutter.cut(0, 0, 0);
  for (int cut : cutter.chosen) {
    for (int i = cut; i < kClasses; i++) classes.level[i]++;
  }
  return classes;
}

// Every distribution leans on a wider one: fewer neighbours known.
void fit_pairs(const uint32_t* counts, const Classes& classes, PairModel* model) {
  model->classes = classes;
  constexpr int n = kPairLevels;
  Counts first[n][n] = {}, second[kClasses][n] = {};
  for (int c = 0; c < kPairContexts; c++) {
    for (int s = 0; s < kPairAlphabet; s++) {
      const uint64_t count = counts[c * kPairAlphabet + s];
      first[c / n][c % n][s & 15] += count;
      second[s & 15][c % n][s >> 4] += count;
    }
  }
  // Of any code; then by the prediction or right; for second then by the level of first.
  Counts all = {}, by_predicted[n] = {}, by_right[n] = {}, by_both[n][n] = {};
  for (int i = 0; i < kClasses; i++) {
    for (int a = 0; a < n; a++) {
      for (int b = 0; b < n; b++) by_predicted[a][i] += first[a][b][i];
      for (int c = 0; c < kClasses; c++) {
        by_right[a][i] += second[c][a][i];
        by_both[classes.level[c]][a][i] += second[c][a][i];
      }
      all[i] += by_predicted[a][i];
    }
  }
  const Counts none = {};
  Counts all_shares, parent, shares;
  share(all, none, all_shares);
  for (int a = 0; a < n; a++) {
    share(by_predicted[a], all_shares, parent);
    for (int b = 0; b < n; b++) {
      share(first[a][b], parent, shares);
      to_weights(shares, &model->first[a][b]);
    }
  }
  for (int b = 0; b < n; b++) {
    Counts right_shares;
    share(by_right[b], all_shares, right_shares);
    for (int c = 0; c < kClasses; c++) {
      share(by_both[classes.level[c]][b], right_shares, parent);
      share(second[c][b], parent, shares);
      to_weights(shares, &model->second[c][b]);
    }
  }
}

// `last` is the last class that has any weight.
uint8_t* write_pairs(const PairModel& m, uint8_t* dst) {
  int last = 0;
  for (int i = 1; i < kOutside; i++) {
    for (const auto& row : m.first) {
      for (const Weights& w : row) last = w.of[i] > 0 ? i : last;
    }
    for (const auto& row : m.second) {
      for (const Weights& w : row) last = w.of[i] > 0 ? i : last;
    }
  }
  *dst++ = static_cast<uint8_t>(m.classes.least);
  BitWriter bits = {dst};
  for (int level = 1; level < kPairLevels; level++) {
    int i = 0;
    while (i < kClasses - 1 && m.classes.level[i] < level) i++;
    bits.put(static_cast<uint32_t>(i), 4);
  }
  bits.put(static_cast<uint32_t>(last), 4);
  for (int a = 0; a < kPairLevels; a++) {
    for (int b = 0; b < kPairLevels; b++) {
      write_weights(m.first[a][b], like_first(m, a, b), last, &bits);
    }
  }
  for (int c = 0; c <= last; c++) {
    for (int b = 0; b < kPairLevels; b++) {
      write_weights(m.second[c][b], like_second(m, c, b), last, &bits);
    }
  }
  return bits.end();
}

bool read_pairs(Reader* reader, PairModel* m) {
  uint8_t least = 0;
  if (!reader->read(&least)) return false;
  *m = {};
  m->classes.least = static_cast<int8_t>(least);
  BitReader bits = {reader};
  for (int level = 1; level < kPairLevels; level++) {
    const auto cut = static_cast<int>(bits.get(4));
    for (int i = cut; i < kClasses; i++) m->classes.level[i]++;
  }
  const auto last = static_cast<int>(bits.get(4));
  if (!bits.good || last >= kOutside || m->classes.least < kLeastClassCode ||
      m->classes.least > kMostClassCode) {
    return false;
  }
  for (int a = 0; a < kPairLevels; a++) {
    for (int b = 0; b < kPairLevels; b++) {
      if (!read_weights(&bits, like_first(*m, a, b), last, &m->first[a][b])) return false;
    }
  }
  for (int c = 0; c <= last; c++) {
    for (int b = 0; b < kPairLevels; b++) {
      if (!read_weights(&bits, like_second(*m, c, b), last, &m->second[c][b])) return false;
    }
  }
  return true;
}

// The product of the factors, in 2^-20. Pairs below 2^-13 are escaped, which has what is left over.
// The others have 2^-10 and a share of the rest by what they are above it: never nothing, and the
// sum is right. At most 225 pairs leave a rest, and not all of them can be below 2^-10.
void pair_frequencies(const PairModel& m, uint16_t* frequencies) {
  constexpr uint32_t kOne = 1u << 10;
  const auto scaled = [](const Weights& w, uint32_t* scale) {
    uint32_t sum = 1;  // of an unused class: at least 1
    for (int i = 0; i < kOutside; i++) sum += w.of[i];
    for (int i = 0; i < kOutside; i++) scale[i] = (uint32_t{w.of[i]} << 15) / sum;
  };
  for (int c = 0; c < kPairContexts; c++) {
    const int right = c % kPairLevels;
    uint16_t* f = frequencies + c * kPairAlphabet;
    uint32_t x[kOutside], y[kOutside], product[kPairAlphabet] = {};
    scaled(m.first[c / kPairLevels][right], x);
    uint32_t kept = 0, excess = 0, small = 0, large = 0;
    for (int i = 0; i < kOutside; i++) {
      if (x[i] == 0) continue;
      scaled(m.second[i][right], y);
      for (int k = 0; k < kOutside; k++) {
        const uint32_t p = x[i] * y[k] >> 10;
        if (p < kOne / 8) continue;
        product[i | k << 4] = p;
        kept += p;
        (p < kOne ? small : large)++;
        if (p >= kOne) excess += p - kOne;
      }
    }
    if (kept == 0) product[0] = kept = kOne / 2, small = 1;  // no frequency is kProbabilityOne
    const uint32_t escape = std::min(std::max(((1u << 20) - kept + kOne / 2) / kOne, 1u),
                                     kProbabilityOne - small - large);
    const uint32_t rest = kProbabilityOne - escape - small - large;
    uint32_t before = 0;
    uint64_t seen = 0;
    for (int s = 0; s < kPairAlphabet; s++) {
      f[s] = product[s] > 0;
      if (product[s] <= kOne) continue;
      seen += product[s] - kOne;
      const auto after = static_cast<uint32_t>(seen * rest / excess);
      f[s] = static_cast<uint16_t>(1 + after - before);
      before = after;
    }
    f[kPairEscape] = static_cast<uint16_t>(escape + rest - before);
  }
}

void make_pair_encoder(const uint16_t* frequencies, uint32_t* symbols) {
  for (int c = 0; c < kPairContexts; c++) {
    const uint16_t* f = frequencies + c * kPairAlphabet;
    const uint32_t escape = f[kPairEscape];
    const uint32_t escaped = kEscapedPair | escape | (kProbabilityOne - escape) << 16;
    uint32_t start = 0;
    for (int s = 0; s < kPairAlphabet; s++) {
      symbols[c * kPairAlphabet + s] = f[s] == 0 || s == kPairEscape ? escaped : f[s] | start << 16;
      start += f[s];
    }
  }
}

void make_pair_decoder(const uint16_t* frequencies, uint32_t* slots) {
  for (int c = 0; c < kPairContexts; c++) {
    uint32_t* at = slots + c * kProbabilityOne;
    for (uint32_t s = 0; s < kPairAlphabet; s++) {
      const uint32_t frequency = frequencies[c * kPairAlphabet + s];
      for (uint32_t i = 0; i < frequency; i++) {
        *at++ = s | frequency << kSymbolBits | i << kOffsetAt;
      }
    }
  }
}

uint64_t coded_pairs(const uint32_t* counts, const uint16_t* frequencies) {
  uint64_t size = 0;
  for (int i = 0; i < kPairTable; i++) {
    if (counts[i] == 0) continue;
    const int symbol = i % kPairAlphabet;
    const bool escaped = frequencies[i] == 0 || symbol == kPairEscape;
    const int outside = (symbol % 16 == kOutside) + (symbol / 16 == kOutside);
    const uint32_t frequency = frequencies[escaped ? i | kPairEscape : i];
    const auto bits =
        static_cast<uint32_t>(256 * (kProbabilityBits + (escaped ? 8 + 16 * outside : 0)));
    size += uint64_t{counts[i]} * (bits - log256(frequency));
  }
  return size;
}

}  // namespace sz
