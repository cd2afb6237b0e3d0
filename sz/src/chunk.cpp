#include "chunk.hpp"

#include <cstring>

namespace sz {

template <typename T>
size_t encode_raw(const T* src, int values, Scratch* scratch) {
  const size_t bytes = static_cast<size_t>(values) * sizeof(T);
  scratch->out.resize(1 + bytes);
  scratch->out[0] = kRawChunk;
  std::memcpy(scratch->out.data() + 1, src, bytes);
  return 1 + bytes;
}

template <typename T>
size_t encode_chunk(const Coding<T>& coding, const T* src, uint64_t first, int values,
                    Scratch* scratch) {
  const size_t raw_size = 1 + static_cast<size_t>(values) * sizeof(T);
  size_t size = 0;
  if (coding.grid != nullptr) size = encode_quantized(coding, src, first, values, scratch);
  if (size == 0) size = encode_lossless(coding, src, values, scratch);
  return size > 0 && size < raw_size ? size : encode_raw(src, values, scratch);
}

template <typename T>
bool decode_chunk(const Coding<T>& coding, const EncodedChunk<T>& chunk, Scratch* scratch) {
  if (chunk.size == 0) return false;
  switch (chunk.src[0]) {
    case kRawChunk:
      if (chunk.size - 1 != static_cast<size_t>(chunk.values) * sizeof(T)) return false;
      std::memcpy(chunk.dst, chunk.src + 1, chunk.size - 1);
      return true;
    case kLosslessChunk:
      return decode_lossless(coding, chunk, scratch);
    case kQuantizedChunk:
      return coding.grid != nullptr && decode_quantized(coding, chunk, scratch);
    default:
      return false;
  }
}

template size_t encode_raw(const float*, int, Scratch*);
template size_t encode_raw(const double*, int, Scratch*);
template size_t encode_chunk(const Coding<float>&, const float*, uint64_t, int, Scratch*);
template size_t encode_chunk(const Coding<double>&, const double*, uint64_t, int, Scratch*);
template bool decode_chunk(const Coding<float>&, const EncodedChunk<float>&, Scratch*);
template bool decode_chunk(const Coding<double>&, const EncodedChunk<double>&, Scratch*);

}  // namespace sz
