// A checksum that finds accidental damage; not for protection against forgers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sz {

// FORMAT.md, "Checksum".
uint32_t checksum_of(const uint8_t* src, size_t size);

}  // namespace sz
