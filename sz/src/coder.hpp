// The codes of one chunk to bytes and back: lane states, words and raw bits (FORMAT.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "context.hpp"
#include "kernels.hpp"
#include "model.hpp"

namespace sz {

constexpr size_t kCoderHeader = 5 + 4 * kLanes;
// Room for any coded chunk of so many values.
constexpr size_t coded_room(int values) {
  return kCoderHeader + 4 * static_cast<size_t>(values) + kPadding;
}

// Writes the codes in scratch and returns the end.
uint8_t* write_codes(const Kernels& kernels, const Model& model, int values, Scratch* scratch,
                     uint8_t* out);

// Finds the parts of the codes in [src, end), which must be followed by kPadding readable bytes.
// False if they are not there.
bool open_codes(const uint8_t* src, const uint8_t* end, Decoding* chunk);

// Decodes a chunk of `values` values into its codes. False if it is malformed.
bool read_codes(const Kernels& kernels, const Model& model, int values, Scratch* scratch,
                Decoding* chunk);

}  // namespace sz
