#include "checksum.hpp"

#include <cstring>

#include "bytes.hpp"

namespace sz {
namespace {

uint64_t mix(uint64_t sum, uint64_t word) {
  sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
  return sum ^ sum >> 32;
}

}  // namespace

uint32_t checksum_of(const uint8_t* src, size_t size) {
  uint64_t sum = size;
  size_t i = 0;
  for (; i + 8 <= size; i += 8) sum = mix(sum, load<uint64_t>(src + i));
  uint64_t rest = 0;
  std::memcpy(&rest, src + i, size - i);
  return static_cast<uint32_t>(mix(sum, rest));
}

}  // namespace sz
