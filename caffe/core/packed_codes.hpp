// Small whole numbers packed into a fixed number of bits each.
//
// Groups of 8 codes of b bits fill b bytes; a last group of fewer fills only the bytes it reaches.
// Codes wider than 8 bits go digit by digit: all low bytes first. Byte order is little endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caffe {

// Bits that hold any code below `codes`: ceil(log2(codes)), 0 for one code.
int bits_for(int64_t codes);

size_t packed_bytes(int64_t count, int bits);

void pack_codes(const int32_t* codes, int64_t count, int bits, uint8_t* packed);
void unpack_codes(const uint8_t* packed, int64_t count, int bits, int32_t* codes);

}  // namespace caffe
