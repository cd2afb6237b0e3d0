#include "header.hpp"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "bytes.hpp"
#include "kernels.hpp"

namespace sz {
namespace {

constexpr uint8_t kMagic[4] = {'C', 'O', 'S', 'Z'};
constexpr uint8_t kKeepSignFlag = 1, kDitherFlag = 2, kChecksumFlag = 4, kModelledFlag = 8,
                  kFactorFlag = 16, kPairsFlag = 32;
constexpr uint8_t kAllFlags = 63;
constexpr uint64_t kMaxValues = std::numeric_limits<int64_t>::max() / 16;

[[noreturn]] void fail(const std::string& what) {
  throw Error("sz: malformed stream: " + what);
}

// Product of the axes; false if negative, or over kMaxValues (even if another axis is 0).
bool multiply(const std::vector<int64_t>& shape, uint64_t* count) {
  uint64_t product = 1;
  bool empty = false;
  for (const int64_t axis : shape) {
    if (axis < 0) return false;
    if (axis == 0) {
      empty = true;
      continue;
    }
    if (static_cast<uint64_t>(axis) > kMaxValues / product) return false;
    product *= static_cast<uint64_t>(axis);
  }
  *count = empty ? 0 : product;
  return true;
}

// 0, or a normal number of the values' own type: then only code 0 is 0, and all codes are finite or
// overflow to infinity.
bool is_step(double step, Type type) {
  if (step == 0) return true;
  if (type == Type::Float64) return step >= DBL_MIN && step <= DBL_MAX;
  return step >= FLT_MIN && step <= FLT_MAX &&
         static_cast<double>(static_cast<float>(step)) == step;
}

// Reads the field behind the shape. A factor of 1 has none.
void read_factor(const uint8_t* src, size_t size, Header* h) {
  const size_t at = h->fixed_bytes();
  if (size < at + kFactorBytes) fail("ends inside the header");
  h->negative_factor = load<double>(src + at);
  const bool in_range = h->negative_factor > 1 && h->negative_factor <= kLargestFactor;
  const double most = h->type == Type::Float64 ? DBL_MAX : FLT_MAX;
  if (!h->keep_sign || !in_range || !(h->step * h->negative_factor <= most)) {
    fail("has a bad factor of negative values");
  }
}

void read_codes_section(const uint8_t* src, size_t size, Sections* sections) {
  Reader reader = {src + sections->table, src + size};
  sections->codes.pairs = sections->header.pairs;
  if (!read_code_model(&reader, &sections->codes)) fail("has bad frequencies");
  sections->table = static_cast<size_t>(reader.next - src);
}

void check_table(const uint8_t* src, size_t size, Sections* sections) {
  const size_t left = size - sections->table;
  const size_t entry = sections->header.entry_bytes();
  const uint64_t chunks = sections->header.layout.chunks();
  if (chunks > left / entry) fail("ends inside the table of chunk sizes");
  sections->chunks = sections->table + chunks * entry;
  size_t total = sections->chunks;
  for (uint64_t i = 0; i < chunks; i++) total += load<uint32_t>(src + sections->table + i * entry);
  if (total != size) {
    fail("the chunks' sizes add up to " + std::to_string(total) + " bytes, not " +
         std::to_string(size));
  }
}

}  // namespace

uint64_t count_values(const std::vector<int64_t>& shape) {
  uint64_t count = 0;
  if (shape.size() > kMaxDims) {
    throw ArgumentError("sz: shape: has " + std::to_string(shape.size()) +
                        " axes, at most 32 work");
  }
  if (!multiply(shape, &count)) {
    throw ArgumentError("sz: shape: an axis is negative or the size overflows");
  }
  return count;
}

void write_header(const Header& h, uint8_t* dst) {
  std::memcpy(dst, kMagic, 4);
  dst[4] = kVersion;
  dst[5] =
      static_cast<uint8_t>((h.keep_sign ? kKeepSignFlag : 0) | (h.dither ? kDitherFlag : 0) |
                           (h.checksum ? kChecksumFlag : 0) | (h.modelled ? kModelledFlag : 0) |
                           (h.negative_factor != 1 ? kFactorFlag : 0) | (h.pairs ? kPairsFlag : 0));
  dst[6] = h.type == Type::Float64 ? 1 : 0;
  dst[7] = static_cast<uint8_t>(h.shape.size());
  dst = store(dst + 8, h.error_bound);
  dst = store(dst, h.step);
  dst = store(dst, h.seed);
  dst = store(dst, h.layout.row);
  dst = store(dst, h.layout.rows);
  dst = store(dst, static_cast<uint32_t>(h.layout.neighbourhood));
  for (const int64_t axis : h.shape) dst = store(dst, axis);
  if (h.negative_factor != 1) store(dst, h.negative_factor);
}

Sections read_sections(const uint8_t* src, size_t size) {
  if (size < kFixedHeader || std::memcmp(src, kMagic, 4) != 0) fail("does not start with a header");
  if (src[4] != kVersion) {
    fail("has format version " + std::to_string(src[4]) + ", this library reads " +
         std::to_string(kVersion));
  }
  const uint8_t flags = src[5];
  if ((flags & ~kAllFlags) != 0) fail("has unknown flags");
  if (src[6] > 1) fail("has an unknown type of values");
  Sections sections = {};
  Header& h = sections.header;
  h.type = src[6] == 1 ? Type::Float64 : Type::Float32;
  h.keep_sign = (flags & kKeepSignFlag) != 0;
  h.dither = (flags & kDitherFlag) != 0;
  h.checksum = (flags & kChecksumFlag) != 0;
  h.modelled = (flags & kModelledFlag) != 0;
  h.pairs = (flags & kPairsFlag) != 0;
  if (h.pairs && !h.modelled) fail("has pairs but does not describe them");
  h.error_bound = load<double>(src + 8);
  h.step = load<double>(src + 16);
  h.seed = load<uint32_t>(src + 24);
  if (!(h.error_bound >= 0) || !is_step(h.step, h.type)) fail("has a bad error bound");
  const size_t dims = src[7];
  if (dims > kMaxDims || size < kFixedHeader + 8 * dims) fail("has a bad shape");
  for (size_t i = 0; i < dims; i++) {
    h.shape.push_back(load<int64_t>(src + kFixedHeader + 8 * i));
  }
  uint64_t count = 0;
  if (!multiply(h.shape, &count)) fail("has a bad shape");
  const auto row = load<uint32_t>(src + 28), rows = load<uint32_t>(src + 32);
  const auto neighbourhood = load<uint32_t>(src + 36);
  if (neighbourhood >= kNeighbourhoods) fail("has an unknown neighbourhood");
  h.layout = make_layout(count, row, rows, static_cast<Neighbourhood>(neighbourhood));
  if (h.layout.row != row || h.layout.rows != rows || h.layout.neighbourhood != neighbourhood) {
    fail("has a bad row length");
  }
  if ((flags & kFactorFlag) != 0) read_factor(src, size, &h);
  sections.table = h.fixed_bytes();
  if (h.modelled) read_codes_section(src, size, &sections);
  check_table(src, size, &sections);
  return sections;
}

}  // namespace sz
