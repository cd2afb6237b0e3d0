// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC'11). A number is a pure function of (key, counter), so slices of a batch, re-runs
// and resumed runs see the same ones. Not for cryptography.
#pragma once

#include <array>
#include <cstdint>

namespace caffe {

using PhiloxBlock = std::array<uint32_t, 4>;

// One of the ten rounds; on single words, for loops that work on many counters side by side.
inline void philox_round(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, uint32_t key0,
                         uint32_t key1) {
  const uint64_t product0 = uint64_t{0xD2511F53} * a;
  const uint64_t product1 = uint64_t{0xCD9E8D57} * c;
  a = static_cast<uint32_t>(product1 >> 32) ^ b ^ key0;
  b = static_cast<uint32_t>(product1);
  c = static_cast<uint32_t>(product0 >> 32) ^ d ^ key1;
  d = static_cast<uint32_t>(product0);
}

// Calls round(key0, key1) for each of the ten rounds.
template <typename Round>
void for_each_philox_round(uint64_t key, const Round& round) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int i = 0; i < 10; ++i) {
    round(key0, key1);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

inline PhiloxBlock philox4x32(PhiloxBlock counter, uint64_t key) {
  for_each_philox_round(key, [&](uint32_t key0, uint32_t key1) {
    philox_round(counter[0], counter[1], counter[2], counter[3], key0, key1);
  });
  return counter;
}

// What numbers the `group`-th block of the `sequence`-th draw.
inline PhiloxBlock random_counter(uint64_t sequence, uint64_t group) {
  return {static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32),
          static_cast<uint32_t>(sequence), static_cast<uint32_t>(sequence >> 32)};
}

// Four 32-bit numbers for elements 4 * group .. + 3 of the `sequence`-th draw under `key`.
inline PhiloxBlock random_group(uint64_t key, uint64_t sequence, uint64_t group) {
  return philox4x32(random_counter(sequence, group), key);
}

}  // namespace caffe
