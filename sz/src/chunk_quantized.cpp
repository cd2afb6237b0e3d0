// Quantised chunks: codes on one grid, and the exceptions that do not fit it (FORMAT.md).
#include <cmath>
#include <cstring>

#include "blocks.hpp"
#include "bytes.hpp"
#include "chunk.hpp"
#include "coder.hpp"

namespace sz {
namespace {

#include "values.inl"

// Lists the values of a block at `step` that the grid does not take. False if there are too many.
template <typename T>
bool add_exceptions(const Blocks& blocks, const Block<const T>& block, int step,
                    const Grid<T>& grid, size_t most, Scratch* s, size_t* count) {
  const LanesOf<const T> lanes(block, grid.seed);
  for (int lane = 0; lane < kLanes; lane++) {
    for (int t = 0; t < kBlockSteps; t++) {
      const T x = lanes.values(lane)[t];
      const T dither = grid.dither ? static_cast<T>(dither_of(lanes.key(lane), t)) : T(0);
      int code;
      if (quantize_value(x, dither, grid, &code)) continue;
      if (*count == most) return false;
      s->exception_at[*count] = static_cast<uint32_t>(static_cast<uint64_t>(lane) * blocks.stride) +
                                static_cast<uint32_t>(step + t);
      std::memcpy(reinterpret_cast<uint8_t*>(s->exception_values) + *count * sizeof(T), &x,
                  sizeof(T));
      ++*count;
    }
  }
  return true;
}

// Fills the codes of `steps` steps. With `most` exceptions at hand, lists them; false if there are
// more.
template <typename T>
bool quantize_lanes(const Kernels& kernels, const Grid<T>& grid, const Blocks& blocks, const T* src,
                    size_t most, Scratch* s, size_t* exceptions) {
  const ValueKernels<T>& value_kernels = kernels_of<T>(kernels);
  T* const buffer = reinterpret_cast<T*>(s->block);
  for (int step = 0; step < blocks.steps; step += kBlockSteps) {
    const Block<const T> block = load_block(blocks, src, step, buffer);
    if (value_kernels.quantize(block, grid, s->codes + step * kLanes) || exceptions == nullptr) {
      continue;
    }
    if (!add_exceptions(blocks, block, step, grid, most, s, exceptions)) return false;
  }
  return true;
}

// --- decoder ---

struct Exceptions {
  const uint8_t* at;
  const uint8_t* values;
  uint32_t count;
};

template <typename T>
bool open_exceptions(Reader* reader, Exceptions* exceptions) {
  if (!reader->read(&exceptions->count)) return false;
  exceptions->at = reader->take(size_t{exceptions->count} * 4);
  exceptions->values = reader->take(size_t{exceptions->count} * sizeof(T));
  return exceptions->at != nullptr && exceptions->values != nullptr;
}

template <typename T>
bool apply_exceptions(const Exceptions& exceptions, T* dst, int values) {
  for (size_t i = 0; i < exceptions.count; i++) {
    const auto index = load<uint32_t>(exceptions.at + 4 * i);
    if (index >= static_cast<uint32_t>(values)) return false;
    dst[index] = load<T>(exceptions.values + sizeof(T) * i);
  }
  return true;
}

template <typename T>
void restore(const Coding<T>& coding, const int16_t* codes, const EncodedChunk<T>& chunk,
             Scratch* s) {
  const int steps = coding.model.layout.lattice_of(chunk.values).steps;
  const Blocks blocks = {static_cast<uint64_t>(chunk.values), static_cast<uint64_t>(steps), steps,
                         chunk.first};
  const ValueKernels<T>& kernels = kernels_of<T>(coding.kernels);
  T* const buffer = reinterpret_cast<T*>(s->block);
  for (int step = 0; step < steps; step += kBlockSteps) {
    const int16_t* here = codes + step * kLanes;
    if (blocks.inside(step)) {
      kernels.dequantize(here, *coding.grid, blocks.direct(chunk.dst, step));
    } else {
      kernels.dequantize(here, *coding.grid, blocks.buffered(buffer, step));
      scatter(blocks, buffer, step, chunk.dst);
    }
  }
}

}  // namespace

template <typename T>
void sample_quantized(const Kernels& kernels, const Grid<T>& grid, const T* src,
                      const Blocks& lanes, Scratch* scratch) {
  quantize_lanes<T>(kernels, grid, lanes, src, 0, scratch, nullptr);
}

template <typename T>
size_t encode_quantized(const Coding<T>& coding, const T* src, uint64_t first, int values,
                        Scratch* s) {
  const int steps = coding.model.layout.lattice_of(values).steps;
  const Blocks blocks = {static_cast<uint64_t>(values), static_cast<uint64_t>(steps), steps, first};
  size_t exceptions = 0;
  const size_t most = most_exceptions(static_cast<size_t>(values));
  if (!quantize_lanes(coding.kernels, *coding.grid, blocks, src, most, s, &exceptions)) return 0;
  s->out.resize(5 + exceptions * (4 + sizeof(T)) + coded_room(values));
  uint8_t* out = s->out.data();
  *out++ = kQuantizedChunk;
  out = store(out, static_cast<uint32_t>(exceptions));
  std::memcpy(out, s->exception_at, exceptions * 4);
  out += exceptions * 4;
  std::memcpy(out, s->exception_values, exceptions * sizeof(T));
  out = write_codes(coding.kernels, coding.model, values, s, out + exceptions * sizeof(T));
  return static_cast<size_t>(out - s->out.data());
}

template <typename T>
bool decode_quantized(const Coding<T>& coding, const EncodedChunk<T>& chunk, Scratch* s) {
  Reader reader = {chunk.src + 1, chunk.src + chunk.size};
  Exceptions exceptions = {};
  Decoding decoding = {};
  decoding.codes = s->codes;
  if (!open_exceptions<T>(&reader, &exceptions)) return false;
  if (!open_codes(reader.next, reader.end, &decoding)) return false;
  if (!read_codes(coding.kernels, coding.model, chunk.values, s, &decoding)) return false;
  restore(coding, s->codes, chunk, s);
  return apply_exceptions(exceptions, chunk.dst, chunk.values);
}

template void sample_quantized(const Kernels&, const Grid<float>&, const float*, const Blocks&,
                               Scratch*);
template void sample_quantized(const Kernels&, const Grid<double>&, const double*, const Blocks&,
                               Scratch*);
template size_t encode_quantized(const Coding<float>&, const float*, uint64_t, int, Scratch*);
template size_t encode_quantized(const Coding<double>&, const double*, uint64_t, int, Scratch*);
template bool decode_quantized(const Coding<float>&, const EncodedChunk<float>&, Scratch*);
template bool decode_quantized(const Coding<double>&, const EncodedChunk<double>&, Scratch*);

}  // namespace sz
