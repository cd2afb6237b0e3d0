// One chunk: the modes, and the choice of the smallest. T: float or double.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blocks.hpp"
#include "context.hpp"
#include "kernels.hpp"
#include "model.hpp"

namespace sz {

// First byte of a chunk.
enum ChunkMode : uint8_t { kRawChunk = 0, kLosslessChunk = 1, kQuantizedChunk = 2 };

// What coding a chunk needs to know of its stream. The model fits the codes of quantised chunks if
// there is a grid, else those of lossless ones.
template <typename T>
struct Coding {
  const Kernels& kernels;
  const Model& model;
  const Grid<T>* grid;  // null: a lossless stream
};

// Encodes into scratch->out and returns the size, at most 1 + sizeof(T) * values. `first` is the
// index of the chunk's first value in the array.
template <typename T>
size_t encode_chunk(const Coding<T>& coding, const T* src, uint64_t first, int values,
                    Scratch* scratch);

// An encoded chunk and where it belongs. kPadding readable bytes must follow src[size - 1].
template <typename T>
struct EncodedChunk {
  const uint8_t* src;
  size_t size;
  uint64_t first;  // index of its first value in the array
  T* dst;
  int values;
};

// False if the chunk is malformed.
template <typename T>
bool decode_chunk(const Coding<T>& coding, const EncodedChunk<T>& chunk, Scratch* scratch);

// The modes. The encoders return 0 if the mode does not pay.
template <typename T>
size_t encode_quantized(const Coding<T>& coding, const T* src, uint64_t first, int values,
                        Scratch* scratch);
template <typename T>
bool decode_quantized(const Coding<T>& coding, const EncodedChunk<T>& chunk, Scratch* scratch);
template <typename T>
size_t encode_raw(const T* src, int values, Scratch* scratch);
template <typename T>
size_t encode_lossless(const Coding<T>& coding, const T* src, int values, Scratch* scratch);
template <typename T>
bool decode_lossless(const Coding<T>& coding, const EncodedChunk<T>& chunk, Scratch* scratch);

// Samples for fit_model() of what the modes would code.
template <typename T>
void sample_quantized(const Kernels& kernels, const Grid<T>& grid, const T* src,
                      const Blocks& lanes, Scratch* scratch);
template <typename T>
void sample_lossless(const T* src, const Blocks& lanes, Scratch* scratch);

}  // namespace sz
