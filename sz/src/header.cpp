#include "header.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "bytes.hpp"
#include "kernels.hpp"

namespace sz {
namespace {

constexpr uint8_t kMagic[4] = {'C', 'O', 'S', 'Z'};
constexpr uint8_t kVersion = 1;
constexpr uint8_t kKeepSignFlag = 1;
constexpr uint8_t kFloat32 = 0;
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

void check_table(const Header& header, const uint8_t* src, size_t size) {
  const size_t left = size - header.size;
  if (header.chunks > left / sizeof(uint32_t)) fail("ends inside the table of chunk sizes");
  size_t total = header.chunks * sizeof(uint32_t);
  for (uint64_t i = 0; i < header.chunks; i++) {
    total += load<uint32_t>(src + header.size + i * sizeof(uint32_t));
  }
  if (total != left) {
    fail("the chunks' sizes add up to " + std::to_string(header.size + total) + " bytes, not " +
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

uint64_t count_chunks(uint64_t count) {
  return (count + kChunkValues - 1) / kChunkValues;
}

void write_header(const Header& header, uint8_t* dst) {
  std::memcpy(dst, kMagic, 4);
  dst[4] = kVersion;
  dst[5] = header.keep_sign ? kKeepSignFlag : 0;
  dst[6] = kFloat32;
  dst[7] = static_cast<uint8_t>(header.shape.size());
  dst = store(dst + 8, header.error_bound);
  dst = store(dst, header.step);
  dst = store(dst, uint32_t{0});  // reserved
  for (const int64_t axis : header.shape) dst = store(dst, axis);
}

Header read_header(const uint8_t* src, size_t size) {
  if (size < kFixedHeader || std::memcmp(src, kMagic, 4) != 0) fail("does not start with a header");
  if (src[4] != kVersion) {
    fail("has format version " + std::to_string(src[4]) + ", this library reads 1");
  }
  if ((src[5] & ~kKeepSignFlag) != 0) fail("has unknown flags");
  if (src[6] != kFloat32) fail("has an unknown type of values");
  if (load<uint32_t>(src + 20) != 0) fail("has unknown options");
  Header header;
  header.keep_sign = (src[5] & kKeepSignFlag) != 0;
  header.error_bound = load<double>(src + 8);
  header.step = load<float>(src + 16);
  if (!(header.error_bound >= 0) || !(header.step >= 0) || !std::isfinite(header.step)) {
    fail("has a bad error bound");
  }
  const size_t dims = src[7];
  header.size = kFixedHeader + 8 * dims;
  if (dims > kMaxDims || size < header.size) fail("has a bad shape");
  for (size_t i = 0; i < dims; i++) {
    header.shape.push_back(load<int64_t>(src + kFixedHeader + 8 * i));
  }
  if (!multiply(header.shape, &header.count)) fail("has a bad shape");
  header.chunks = count_chunks(header.count);
  check_table(header, src, size);
  return header;
}

}  // namespace sz
