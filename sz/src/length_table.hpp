// How a Huffman code is described in the stream: the length of each symbol's code as a difference
// from a predicted one (FORMAT.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "bytes.hpp"

namespace sz {

constexpr size_t kLargestLengthTable = 1 + (1 + 256 * 6 + 7) / 8;

// Writes the table, at most kLargestLengthTable bytes, and returns its end.
uint8_t* write_length_table(const uint8_t* lengths, uint8_t* dst);

// False if the table does not end within the input. The lengths need not make a code.
bool read_length_table(Reader* reader, uint8_t* lengths);

}  // namespace sz
