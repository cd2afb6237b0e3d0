// libFuzzer: a few bytes of options, the rest are values; the contract has to hold.
#include <algorithm>

#include "fuzz.hpp"

namespace {

struct Choices {
  uint8_t flags;  // 1 keep_sign, 2 dither, 4 checksum, 8 float64, 16 relative
  uint8_t exponent;
  uint8_t columns, rows;
  uint8_t repeats;
  uint8_t factor;  // of negative values, with keep_sign: 1 + factor / 4
};

template <typename T>
void run(sz::Context& context, const Choices& choices, const uint8_t* bytes, size_t size) {
  std::vector<T> values(size / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes, values.size() * sizeof(T));
  // Copies reach several chunks with short inputs.
  std::vector<T> data;
  const size_t copies = std::min<size_t>(1 + choices.repeats, 1 + 70000 / (1 + values.size()));
  for (size_t i = 0; i < copies; i++) data.insert(data.end(), values.begin(), values.end());
  const int64_t columns = 1 + choices.columns % 80, rows = 1 + choices.rows % 40;
  const int64_t outer = static_cast<int64_t>(data.size()) / (columns * rows);
  data.resize(static_cast<size_t>(outer * rows * columns));
  sz::Options options;
  options.error_bound = choices.exponent == 0 ? 0 : std::ldexp(1.1, choices.exponent - 140);
  options.keep_sign = (choices.flags & 1) != 0;
  if (options.keep_sign) options.negative_factor = 1 + choices.factor / 4.0;
  options.dither = (choices.flags & 2) != 0;
  options.checksum = (choices.flags & 4) != 0;
  options.bound = (choices.flags & 16) != 0 ? sz::Bound::Range : sz::Bound::Absolute;
  options.seed = choices.exponent;
  options.threads = 1;
  fuzz::check_round_trip(context, data, {outer, rows, columns}, options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static sz::Context context;
  Choices choices;
  if (size < sizeof(choices)) return 0;
  std::memcpy(&choices, data, sizeof(choices));
  data += sizeof(choices);
  size -= sizeof(choices);
  if ((choices.flags & 8) != 0) {
    run<double>(context, choices, data, size);
  } else {
    run<float>(context, choices, data, size);
  }
  return 0;
}
