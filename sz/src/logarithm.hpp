// Logarithms in integers, so that every machine decides alike.
#pragma once

#include <cstdint>

namespace sz {

// 256 * log2(v) for v >= 1, within 1.
uint32_t log256(uint32_t v);

}  // namespace sz
