// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC'11). A number is a pure function of (key, counter), so slices of a batch, re-runs and
// resumed runs see the same ones. Not for cryptography.
#pragma once

#include <array>
#include <cstdint>

namespace caffe {

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock philox4x32(PhiloxBlock counter, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// Four 32-bit numbers for elements 4 * group .. 4 * group + 3 of the `sequence`-th draw under `key`.
inline PhiloxBlock random_group(uint64_t key, uint64_t sequence, uint64_t group) {
  return philox4x32({static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32),
                     static_cast<uint32_t>(sequence), static_cast<uint32_t>(sequence >> 32)},
                    key);
}

}  // namespace caffe
