// Prints checksums of streams and of what they decode to, for the same on another machine.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "sz/sz.hpp"

namespace {

uint64_t hash(const void* data, size_t size, uint64_t seed = 14695981039346656037u) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < size; i++) seed = (seed ^ bytes[i]) * 1099511628211u;  // FNV-1a
  return seed;
}

// Integer arithmetic and one division by a power of two: exact on every machine.
template <typename T>
std::vector<T> make_data(size_t count, int kind) {
  std::vector<T> data(count);
  uint64_t state = 88172645463325252u;
  int64_t walk = 0;
  for (size_t i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const auto uniform = static_cast<int64_t>(state >> 44) - (1 << 19);
    walk += uniform / 16 - walk / 8;
    const int64_t value = kind == 0 ? (uniform > 0 ? uniform : 0) : walk;
    data[i] = static_cast<T>(value) / (1 << 18);
    if (kind == 2) std::memcpy(&data[i], &state, sizeof(T));
  }
  return data;
}

template <typename T>
void print(int kind, const std::vector<int64_t>& shape, double bound, int choices) {
  size_t count = 1;
  for (const int64_t axis : shape) count *= static_cast<size_t>(axis);
  const std::vector<T> data = make_data<T>(count, kind);
  sz::Options options;
  options.error_bound = bound;
  options.keep_sign = (choices & 1) != 0;
  if ((choices & 16) != 0) options.negative_factor = 2.7;
  options.dither = (choices & 2) != 0;
  options.checksum = (choices & 4) != 0;
  options.bound = (choices & 8) != 0 && kind < 2 ? sz::Bound::Range : sz::Bound::Absolute;
  options.seed = 3;
  const sz::Type type = sizeof(T) == 4 ? sz::Type::Float32 : sz::Type::Float64;
  std::vector<uint8_t> stream(sz::max_compressed_size(count, shape.size(), type));
  sz::Context context;
  sz::Statistics statistics;
  const size_t size =
      sz::compress(context, data.data(), shape, options, stream.data(), stream.size(), &statistics);
  // Processors differ in the sign of the NaN that infinities of both signs add up to.
  if (std::isnan(statistics.sum)) statistics.sum = 0;
  std::vector<T> restored(count);
  sz::decompress(context, stream.data(), size, restored.data(), count);
  std::printf("%zu %d %zu %g %d: %zu %016llx %016llx %016llx\n", sizeof(T), kind, shape.size(),
              bound, choices, size, static_cast<unsigned long long>(hash(stream.data(), size)),
              static_cast<unsigned long long>(hash(restored.data(), count * sizeof(T))),
              static_cast<unsigned long long>(hash(&statistics, sizeof(statistics))));
}

}  // namespace

int main() {
  const std::vector<int64_t> shapes[] = {{70001}, {5, 3, 30, 40}, {20, 500}, {60}};
  for (const auto& shape : shapes) {
    for (int kind = 0; kind < 3; kind++) {
      for (const double bound : {0.0, 1e-3, 0.05}) {
        for (const int choices : {0, 3, 14, 17, 19}) {
          print<float>(kind, shape, bound, choices);
          print<double>(kind, shape, bound, choices);
        }
      }
    }
  }
  return 0;
}
