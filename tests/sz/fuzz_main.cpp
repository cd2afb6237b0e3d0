// Damages streams at random, with a fixed seed, and decodes them. To be built with ASan and UBSan, so
// that any access out of bounds ends it. Also compresses into too little room, and compares every
// instruction set of this processor with the scalar code: streams, statistics, and what sound and
// damaged streams decode to.
// Usage: fuzz_main ROUNDS
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "sz/sz.hpp"

namespace {

using Random = std::mt19937;

uint32_t below(Random& random, size_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

// One of a few kinds of data; `kind` chooses.
std::vector<float> make_data(Random& random, uint32_t kind) {
  std::vector<float> data(below(random, kind % 2 == 0 ? 3000 : 140000));
  float walk = 0;
  for (float& x : data) {
    const float uniform = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
    walk += uniform;
    const uint32_t bits = static_cast<uint32_t>(random());
    switch (kind % 5) {
      case 0:
        x = uniform > 0 ? uniform * uniform : 0.0f;
        break;
      case 1:
        x = walk;
        break;
      case 2:
        x = bits % 50 == 0 ? uniform * 1e6f : uniform;
        break;
      case 3:
        std::memcpy(&x, &bits, 4);
        break;
      default:
        x = bits % 30 == 0 ? 1.0f : 0.0f;
        break;
    }
  }
  return data;
}

void damage(Random& random, std::vector<uint8_t>* stream) {
  const uint32_t hits = 1 + below(random, 8);
  for (uint32_t i = 0; i < hits && !stream->empty(); i++) {
    // Half of the hits go to the first bytes, where the structure is.
    const size_t range = random() % 2 == 0 ? stream->size() : std::min<size_t>(stream->size(), 120);
    uint8_t& byte = (*stream)[below(random, range)];
    byte = random() % 2 == 0 ? static_cast<uint8_t>(byte ^ 1u << below(random, 8))
                             : static_cast<uint8_t>(random());
  }
  if (below(random, 10) == 0) stream->resize(below(random, stream->size() + 1));
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

void check_round_trip(const std::vector<float>& data, const std::vector<float>& restored,
                      double bound) {
  for (size_t i = 0; i < data.size(); i++) {
    if (std::memcmp(&data[i], &restored[i], 4) == 0) continue;
    const double error = std::fabs(static_cast<double>(data[i]) - static_cast<double>(restored[i]));
    if (!(error <= bound)) fail("the bound does not hold");
  }
}

// Scalar first: the others are compared with it.
std::vector<sz::Isa> instruction_sets() {
  std::vector<sz::Isa> sets = {sz::Isa::Scalar};
  for (const auto& [isa, name] : {std::pair{sz::Isa::Avx2, "avx2"}, {sz::Isa::Avx512, "avx512"}}) {
    std::printf("%s: %s\n", name, sz::supported(isa) ? "compared" : "not on this processor");
    if (sz::supported(isa)) sets.push_back(isa);
  }
  return sets;
}

// The values, or none if the stream is refused.
std::vector<float> decode(sz::Context& context, const std::vector<uint8_t>& stream, sz::Isa isa) {
  try {
    const sz::Info info = sz::read_info(stream.data(), stream.size());
    if (info.count > (1u << 22)) return {};
    std::vector<float> restored(info.count);
    sz::decompress(context, stream.data(), stream.size(), restored.data(), info.count, 1, isa);
    return restored;
  } catch (const sz::Error&) {
    return {};
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// As the scalar code decodes it; every other instruction set must give the same bits.
std::vector<float> decode_by_all(sz::Context& context, const std::vector<uint8_t>& stream,
                                 const std::vector<sz::Isa>& sets) {
  const std::vector<float> restored = decode(context, stream, sets[0]);
  for (size_t i = 1; i < sets.size(); i++) {
    if (!same_bits(decode(context, stream, sets[i]), restored)) {
      fail("instruction sets decode differently");
    }
  }
  return restored;
}

std::vector<uint8_t> compress(sz::Context& context, const std::vector<float>& data,
                              const std::vector<int64_t>& shape, const sz::Options& options,
                              sz::Statistics* statistics) {
  std::vector<uint8_t> stream(sz::max_compressed_size(data.size(), shape.size()));
  const size_t size =
      sz::compress(context, data.data(), shape, options, stream.data(), stream.size(), statistics);
  if (size == 0) fail("the worst case did not suffice");
  stream.resize(size);
  return stream;
}

std::vector<uint8_t> compress_by_all(sz::Context& context, const std::vector<float>& data,
                                     const std::vector<int64_t>& shape, sz::Options options,
                                     const std::vector<sz::Isa>& sets) {
  sz::Statistics statistics = {}, others = {};
  options.isa = sets[0];
  const std::vector<uint8_t> stream = compress(context, data, shape, options, &statistics);
  for (size_t i = 1; i < sets.size(); i++) {
    options.isa = sets[i];
    if (compress(context, data, shape, options, &others) != stream) fail("streams differ");
    if (std::memcmp(&others, &statistics, sizeof(others)) != 0) fail("statistics differ");
  }
  return stream;
}

// One or three axes, of about as many values as `data` has; cuts off the rest.
std::vector<int64_t> make_shape(Random& random, std::vector<float>* data) {
  const size_t row = 2 + below(random, 60), rows = 1 + below(random, 60);
  const size_t planes = data->size() / (row * rows);
  if (planes == 0 || random() % 2 == 0) return {static_cast<int64_t>(data->size())};
  data->resize(planes * row * rows);
  return {static_cast<int64_t>(planes), static_cast<int64_t>(rows), static_cast<int64_t>(row)};
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  const std::vector<sz::Isa> sets = instruction_sets();
  Random random(12345);
  sz::Context context;
  const double bounds[] = {0, 1e-6, 1e-3, 0.02, 0.3};
  for (int round = 0; round < rounds; round++) {
    std::vector<float> data = make_data(random, random());
    const std::vector<int64_t> shape = make_shape(random, &data);
    sz::Options options;
    options.error_bound = bounds[below(random, 5)];
    options.keep_sign = random() % 2 == 0;
    options.dither = random() % 2 == 0;
    options.seed = random();
    options.threads = 1;
    const std::vector<uint8_t> stream = compress_by_all(context, data, shape, options, sets);
    std::vector<uint8_t> small(below(random, stream.size() + 1));
    const size_t fitted =
        sz::compress(context, data.data(), shape, options, small.data(), small.size());
    if (fitted != (small.size() == stream.size() ? stream.size() : 0)) {
      fail("wrong result in too little room");
    }
    const std::vector<float> restored = decode_by_all(context, stream, sets);
    if (restored.size() != data.size()) fail("a sound stream is refused");
    check_round_trip(data, restored, options.error_bound);
    for (int i = 0; i < 5; i++) {
      std::vector<uint8_t> damaged = stream;
      damage(random, &damaged);
      // A copy of its own size: ASan sees a read past its end.
      decode_by_all(context, {damaged.begin(), damaged.end()}, sets);
    }
  }
  std::printf("%d rounds without a difference\n", rounds);
  return 0;
}
