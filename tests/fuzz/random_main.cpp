// Round trips and damaged streams at random, with a fixed seed. Built with ASan and UBSan by
// tests/sz/test_sz_fuzz.py: any access out of bounds ends it.
// Usage: random_main ROUNDS
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "fuzz.hpp"

namespace {

using Random = std::mt19937;

uint32_t below(Random& random, size_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

// One of a few kinds of data; `kind` chooses.
template <typename T>
std::vector<T> make_data(Random& random, uint32_t kind) {
  std::vector<T> data(below(random, kind % 2 == 0 ? 3000 : 140000));
  T walk = 0;
  for (T& x : data) {
    const T uniform = static_cast<T>(random() >> 8) * static_cast<T>(0x1p-23) - 1;
    walk += uniform;
    const uint64_t bits = static_cast<uint64_t>(random()) << 32 | random();
    switch (kind % 5) {
      case 0:
        x = uniform > 0 ? uniform * uniform : 0;
        break;
      case 1:
        x = walk;
        break;
      case 2:
        x = bits % 50 == 0 ? uniform * static_cast<T>(1e6) : uniform;
        break;
      case 3:
        std::memcpy(&x, &bits, sizeof(x));
        break;
      default:
        x = bits % 30 == 0 ? 1 : 0;
        break;
    }
  }
  return data;
}

sz::Options make_options(Random& random) {
  const double bounds[] = {0, 1e-6, 1e-3, 0.02, 0.3, 40};
  const double factors[] = {1, 1, 1.3, 4, 64, 1024};
  const int64_t rows[] = {0, 2, 7, 60, 1000};
  sz::Options options;
  options.error_bound = bounds[below(random, 6)];
  options.bound = random() % 8 == 0 ? sz::Bound::Range : sz::Bound::Absolute;
  options.keep_sign = random() % 2 == 0;
  if (options.keep_sign) options.negative_factor = factors[below(random, 6)];
  options.dither = random() % 2 == 0;
  options.seed = random();
  options.checksum = random() % 3 == 0;
  options.row_length = rows[below(random, 5)];
  options.isa = random() % 2 == 0 ? sz::Isa::Scalar : sz::Isa::Auto;
  options.threads = 1;
  return options;
}

// One, two or three axes; cuts what is too much off.
template <typename T>
std::vector<int64_t> make_shape(Random& random, std::vector<T>* data) {
  const auto count = static_cast<int64_t>(data->size());
  const int64_t columns = 1 + below(random, 70), rows = 1 + below(random, 40);
  std::vector<int64_t> shape = {count};
  if (random() % 2 == 0) shape = {count / columns, columns};
  if (random() % 2 == 0) shape = {count / (columns * rows), rows, columns};
  int64_t product = 1;
  for (const int64_t axis : shape) product *= axis;
  data->resize(static_cast<size_t>(product));
  return shape;
}

void damage(Random& random, std::vector<uint8_t>* stream) {
  const uint32_t hits = 1 + below(random, 8);
  for (uint32_t i = 0; i < hits && !stream->empty(); i++) {
    // Half of the hits go to the first bytes, where the structure is.
    const size_t range = random() % 2 == 0 ? stream->size() : std::min<size_t>(stream->size(), 300);
    uint8_t& byte = (*stream)[below(random, range)];
    byte = random() % 2 == 0 ? static_cast<uint8_t>(byte ^ 1u << below(random, 8))
                             : static_cast<uint8_t>(random());
  }
  if (below(random, 10) == 0) stream->resize(below(random, stream->size() + 1));
}

template <typename T>
void round(Random& random, sz::Context& context) {
  std::vector<T> data = make_data<T>(random, random());
  const std::vector<int64_t> shape = make_shape(random, &data);
  const sz::Options options = make_options(random);
  const std::vector<uint8_t> stream = fuzz::check_round_trip(context, data, shape, options);
  std::vector<uint8_t> small(below(random, stream.size() + 1));
  const size_t fitted =
      sz::compress(context, data.data(), shape, options, small.data(), small.size());
  if (fitted != (small.size() == stream.size() ? stream.size() : 0)) {
    fuzz::fail("wrong result in too little room");
  }
  for (int i = 0; i < 5; i++) {
    std::vector<uint8_t> damaged = stream;
    damage(random, &damaged);
    fuzz::decode_anything(context, damaged.data(), damaged.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  Random random(12345);
  sz::Context context;
  std::printf("%zu instruction sets\n", fuzz::instruction_sets().size());
  for (int i = 0; i < rounds; i++) {
    if (i % 2 == 0) {
      round<float>(random, context);
    } else {
      round<double>(random, context);
    }
  }
  return 0;
}
