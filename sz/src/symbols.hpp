// The symbols of one class: packed at 1, 2, 4 or 8 bits and entropy-coded; larger ones are patched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bytes.hpp"
#include "context.hpp"
#include "kernels.hpp"

namespace sz {

// Writes `count` symbols with the histogram `counts` and returns the end. Those that are 255 stand
// for the next of `large`, which is moved on. symbols[count] to [count + 7] are cleared for the
// time of the call.
uint8_t* write_symbols(const Kernels& kernels, uint8_t* symbols, size_t count,
                       const uint32_t* counts, const uint16_t** large, Scratch* scratch,
                       uint8_t* dst);

// Symbols that did not fit: indices in ascending order, and their values.
struct Patches {
  const uint8_t* at;
  const uint8_t* value;
  size_t count;

  size_t index(size_t i) const { return load<uint16_t>(at + 2 * i); }
  uint16_t symbol(size_t i) const { return load<uint16_t>(value + 2 * i); }
};

// Reads `count` symbols. False if they are malformed. May write kPadding symbols more.
bool read_symbols(const Kernels& kernels, Reader* reader, size_t count, Scratch* scratch,
                  uint8_t* symbols, Patches* patches);

}  // namespace sz
