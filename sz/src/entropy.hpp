// Estimates of coded size, in integers so that every machine decides alike.
#pragma once

#include <cstdint>

namespace sz {

// Zero-order entropy of bytes with this histogram, in 1/256 bit; within 1%.
uint64_t entropy_size(const uint32_t* counts);

// How many of the 256 symbols occur.
uint32_t used_symbols(const uint32_t* counts);

}  // namespace sz
