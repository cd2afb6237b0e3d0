// What the harnesses check: of a round trip all that sz promises, of hostile bytes that they do no
// harm. A failure aborts, which every fuzzer notices.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "sz/sz.hpp"

namespace fuzz {

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// Scalar first, and what else this processor has: all have to agree with it.
inline const std::vector<sz::Isa>& instruction_sets() {
  static const std::vector<sz::Isa> sets = [] {
    std::vector<sz::Isa> supported;
    for (const sz::Isa isa : {sz::Isa::Scalar, sz::Isa::Avx2, sz::Isa::Avx512}) {
      if (sz::supported(isa)) supported.push_back(isa);
    }
    return supported;
  }();
  return sets;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
bool keeps_contract(T x, T y, const sz::Info& info) {
  if (std::memcmp(&x, &y, sizeof(x)) == 0) return true;
  if (info.error_bound == 0 || !std::isfinite(x)) return false;
  if (x == 0 && y != 0) return false;
  if (info.keep_sign && ((x > 0) != (y > 0) || (x < 0) != (y < 0))) return false;
  const double bound = info.error_bound * (x < 0 ? info.negative_factor : 1);
  return std::fabs(static_cast<long double>(x) - static_cast<long double>(y)) <= bound;
}

template <typename T>
void check_ranges(sz::Context& context, const std::vector<uint8_t>& stream,
                  const std::vector<T>& whole, uint64_t chunk_values, sz::Isa isa) {
  const uint64_t count = whole.size();
  const uint64_t border = chunk_values < count ? chunk_values : count / 2;
  const uint64_t firsts[] = {0, count / 3, border, border > 0 ? border - 1 : 0};
  for (const uint64_t first : firsts) {
    const uint64_t length = (count - first) / 2 + (count - first) % 2;
    std::vector<T> part(length);
    sz::decompress_range(context, stream.data(), stream.size(), first, length, part.data(), 1, isa);
    if (length > 0 && std::memcmp(part.data(), whole.data() + first, length * sizeof(T)) != 0) {
      fail("a range is not the slice of the whole");
    }
  }
}

// Compresses, decodes and compares everything, with all instruction sets; returns the stream.
template <typename T>
std::vector<uint8_t> check_round_trip(sz::Context& context, const std::vector<T>& data,
                                      const std::vector<int64_t>& shape, sz::Options options) {
  sz::Statistics statistics = {}, others = {};
  options.isa = sz::Isa::Scalar;
  const sz::Type type = sizeof(T) == 4 ? sz::Type::Float32 : sz::Type::Float64;
  const size_t capacity = sz::max_compressed_size(data.size(), shape.size(), type);
  std::vector<uint8_t> stream(capacity), other(capacity);
  stream.resize(
      sz::compress(context, data.data(), shape, options, stream.data(), capacity, &statistics));
  if (stream.empty()) fail("the worst case did not suffice");
  for (const sz::Isa isa : instruction_sets()) {
    options.isa = isa;
    other.resize(capacity);
    other.resize(
        sz::compress(context, data.data(), shape, options, other.data(), capacity, &others));
    if (stream != other) fail("the instruction sets disagree");
    if (std::memcmp(&statistics, &others, sizeof(others)) != 0) fail("the statistics disagree");
  }
  const sz::Info info = sz::read_info(stream.data(), stream.size());
  if (info.shape != shape || info.count != data.size()) fail("the header has another shape");
  if (info.keep_sign != options.keep_sign || info.negative_factor != options.negative_factor) {
    fail("the header has other options");
  }
  std::vector<T> restored(data.size()), again(data.size());
  sz::decompress(context, stream.data(), stream.size(), restored.data(), data.size(), 1,
                 sz::Isa::Scalar);
  for (const sz::Isa isa : instruction_sets()) {
    sz::decompress(context, stream.data(), stream.size(), again.data(), data.size(), 1, isa);
    if (!same_bits(restored, again)) fail("the decoders disagree");
    check_ranges(context, stream, restored, info.chunk_values, isa);
  }
  for (size_t i = 0; i < data.size(); i++) {
    if (!keeps_contract(data[i], restored[i], info)) {
      fail("a value breaks the contract");
    }
  }
  return stream;
}

// The second half and then all of the values; none if the stream is refused.
template <typename T>
std::vector<T> decode_as(sz::Context& context, const std::vector<uint8_t>& stream,
                         const sz::Info& info, sz::Isa isa) {
  std::vector<T> restored(info.count);
  const uint64_t middle = info.count / 2, length = info.count - middle;
  try {
    sz::decompress_range(context, stream.data(), stream.size(), middle, length, restored.data(), 1,
                         isa);
    sz::decompress(context, stream.data(), stream.size(), restored.data(), info.count, 1, isa);
  } catch (const sz::Error&) {
    return {};
  }
  return restored;
}

template <typename T>
void decode_by_all(sz::Context& context, const std::vector<uint8_t>& stream, const sz::Info& info) {
  const std::vector<T> restored = decode_as<T>(context, stream, info, sz::Isa::Scalar);
  for (const sz::Isa isa : instruction_sets()) {
    if (!same_bits(restored, decode_as<T>(context, stream, info, isa))) {
      fail("the decoders disagree on a damaged stream");
    }
  }
}

// Decodes bytes that may be no stream at all, with all instruction sets.
inline void decode_anything(sz::Context& context, const uint8_t* data, size_t size) {
  // A copy of its own size: ASan sees a read past its end.
  const std::vector<uint8_t> exact(data, data + size);
  sz::Info info;
  try {
    info = sz::read_info(exact.data(), exact.size());
  } catch (const sz::Error&) {
    return;
  }
  if (info.count > (1u << 20)) return;
  if (info.type == sz::Type::Float32) {
    decode_by_all<float>(context, exact, info);
  } else {
    decode_by_all<double>(context, exact, info);
  }
}

}  // namespace fuzz
