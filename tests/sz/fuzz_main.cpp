// Damages streams at random, with a fixed seed, and decodes them. Built with ASan and UBSan by
// test_sz_stream.py: any access out of bounds ends it. Also compresses into too little room.
// Usage: fuzz_main ROUNDS
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
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

void decode_damaged(Random& random, sz::Context& context, std::vector<uint8_t> stream,
                    sz::Isa isa) {
  damage(random, &stream);
  // A copy of its own size: ASan sees a read past its end.
  const std::vector<uint8_t> exact(stream.begin(), stream.end());
  try {
    const sz::Info info = sz::read_info(exact.data(), exact.size());
    if (info.count > (1u << 22)) return;
    std::vector<float> restored(info.count);
    sz::decompress(context, exact.data(), exact.size(), restored.data(), info.count, 1, isa);
  } catch (const sz::Error&) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  Random random(12345);
  sz::Context context;
  const double bounds[] = {0, 1e-6, 1e-3, 0.02, 0.3};
  for (int round = 0; round < rounds; round++) {
    const std::vector<float> data = make_data(random, random());
    sz::Options options;
    options.error_bound = bounds[below(random, 5)];
    options.keep_sign = random() % 2 == 0;
    options.isa = random() % 2 == 0 ? sz::Isa::Scalar : sz::Isa::Auto;
    options.threads = 1;
    const std::vector<int64_t> shape = {static_cast<int64_t>(data.size())};
    std::vector<uint8_t> stream(sz::max_compressed_size(data.size(), 1));
    const size_t size =
        sz::compress(context, data.data(), shape, options, stream.data(), stream.size());
    if (size == 0) fail("the worst case did not suffice");
    stream.resize(size);
    std::vector<uint8_t> small(below(random, size + 1));
    const size_t fitted =
        sz::compress(context, data.data(), shape, options, small.data(), small.size());
    if (fitted != (small.size() == size ? size : 0)) fail("wrong result in too little room");
    std::vector<float> restored(data.size());
    sz::decompress(context, stream.data(), size, restored.data(), data.size(), 1, options.isa);
    check_round_trip(data, restored, options.error_bound);
    for (int i = 0; i < 5; i++) decode_damaged(random, context, stream, options.isa);
  }
  return 0;
}
