// One chunk of up to kChunkValues values: the modes, and the choice of the smallest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "context.hpp"
#include "kernels.hpp"

namespace sz {

// First byte of a chunk.
enum ChunkMode : uint8_t { kRawChunk = 0, kLosslessChunk = 1, kQuantizedChunk = 2 };

// Encodes into scratch->out and returns the size, at most 1 + 4 * count. grid is null for lossless.
size_t encode_chunk(const Kernels& kernels, const Grid* grid, const float* src, int count,
                    Scratch* scratch);

// False if the chunk is malformed. grid is null in a lossless stream.
bool decode_chunk(const Kernels& kernels, const Grid* grid, const uint8_t* src, size_t size,
                  float* dst, int count, Scratch* scratch);

// The modes. The encoders return 0 if the mode does not pay; the decoders start after the mode.
size_t encode_quantized(const Kernels& kernels, const Grid& grid, const float* src, int count,
                        Scratch* scratch);
bool decode_quantized(const Kernels& kernels, const Grid& grid, const uint8_t* src, size_t size,
                      float* dst, int count, Scratch* scratch);
size_t encode_lossless(const Kernels& kernels, const float* src, int count, Scratch* scratch);
bool decode_lossless(const Kernels& kernels, const uint8_t* src, size_t size, float* dst, int count,
                     Scratch* scratch);

}  // namespace sz
