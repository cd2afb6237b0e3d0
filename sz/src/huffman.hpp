// Canonical Huffman codes over bytes, at most kHuffmanBits long, written lowest bit first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.hpp"

namespace sz {

// Lengths of a complete code for `counts` (at least two of them non-zero); 0 for unused symbols.
void huffman_lengths(const uint32_t* counts, uint8_t* lengths);

// Encoder's table: length << 16 | code, for each symbol.
void huffman_codes(const uint8_t* lengths, uint32_t* codes);

// Decoder's table: symbol << 8 | length, by the next kHuffmanBits bits. False unless the lengths
// make a complete code, so that every index is filled.
bool huffman_table(const uint8_t* lengths, uint16_t* table);

}  // namespace sz
