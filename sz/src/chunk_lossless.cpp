// Lossless chunks: exponents are coded like the codes of quantised chunks, with 0 for words that are
// all zeros; signs and mantissas of the other words follow as they are, but for low bytes that are
// zero in all of them (FORMAT.md).
#include <cstring>

#include "blocks.hpp"
#include "bytes.hpp"
#include "chunk.hpp"
#include "coder.hpp"

namespace sz {
namespace {

#include "float_bits.inl"

template <typename T>
constexpr int kExponentMask = (1 << (8 * sizeof(T) - 1 - Float<T>::kMantissa)) - 1;
template <typename T>
constexpr int kBias = kExponentMask<T> / 2;
// Of the sign and mantissa, the sign in the highest bit.
template <typename T>
constexpr int kRestBytes = (Float<T>::kMantissa + 8) / 8;

// The exponent of a word that is not all zeros: above the bias it counts from 1, below from -1.
template <typename T>
int exponent_code(typename Float<T>::Bits bits) {
  const int exponent = static_cast<int>(bits >> Float<T>::kMantissa) & kExponentMask<T>;
  return exponent >= kBias<T> ? exponent - kBias<T> + 1 : exponent - kBias<T>;
}

template <typename T>
typename Float<T>::Bits rest_of(typename Float<T>::Bits bits) {
  using Bits = typename Float<T>::Bits;
  const Bits mantissa = bits & ((Bits{1} << Float<T>::kMantissa) - 1);
  return bits >> (8 * sizeof(T) - 1) << Float<T>::kMantissa | mantissa;
}

// False if a code is none of exponent_code()'s.
template <typename T>
bool join_word(int code, typename Float<T>::Bits rest, typename Float<T>::Bits* bits) {
  using Bits = typename Float<T>::Bits;
  const int exponent = code > 0 ? code - 1 + kBias<T> : code + kBias<T>;
  if (exponent < 0 || exponent > kExponentMask<T>) return false;
  const Bits sign = rest >> Float<T>::kMantissa & 1;
  const Bits mantissa = rest & ((Bits{1} << Float<T>::kMantissa) - 1);
  *bits =
      sign << (8 * sizeof(T) - 1) | static_cast<Bits>(exponent) << Float<T>::kMantissa | mantissa;
  return true;
}

// Fills the codes of a block and appends its rests; returns how many.
template <typename T>
size_t split_block(const Block<const T>& block, int16_t* codes, typename Float<T>::Bits* rests) {
  size_t count = 0;
  for (int lane = 0; lane < kLanes; lane++) {
    for (int t = 0; t < kBlockSteps; t++) {
      const auto bits = bits_of(block.values[lane * block.stride + t]);
      codes[t * kLanes + lane] = static_cast<int16_t>(bits == 0 ? 0 : exponent_code<T>(bits));
      rests[count] = rest_of<T>(bits);
      count += bits != 0;
    }
  }
  return count;
}

template <typename T>
int zero_low_bytes(typename Float<T>::Bits all) {
  int bytes = 0;
  while (bytes < kRestBytes<T> && (all >> (8 * bytes) & 255) == 0) bytes++;
  return bytes;
}

}  // namespace

template <typename T>
void sample_lossless(const T* src, const Blocks& lanes, Scratch* s) {
  typename Float<T>::Bits rests[kBlockValues + 1];
  for (int step = 0; step < lanes.steps; step += kBlockSteps) {
    const auto block = load_block(lanes, src, step, reinterpret_cast<T*>(s->block));
    split_block(block, s->codes + step * kLanes, rests);
  }
}

template <typename T>
size_t encode_lossless(const Coding<T>& coding, const T* src, int values, Scratch* s) {
  using Bits = typename Float<T>::Bits;
  const int steps = coding.model.layout.lattice_of(values).steps;
  const Blocks blocks = {static_cast<uint64_t>(values), static_cast<uint64_t>(steps), steps, 0};
  Bits all = 0;
  for (int i = 0; i < values; i++) all |= rest_of<T>(bits_of(src[i]));
  const int dropped = zero_low_bytes<T>(all);
  const auto bytes = static_cast<size_t>(kRestBytes<T> - dropped);
  s->out.resize(6 + bytes * static_cast<size_t>(values) + sizeof(Bits) + coded_room(values));
  uint8_t* out = s->out.data();
  *out++ = kLosslessChunk;
  *out++ = static_cast<uint8_t>(dropped);
  uint8_t* const count_at = out;
  out += 4;
  uint32_t words = 0;
  Bits rests[kBlockValues + 1];
  for (int step = 0; step < steps; step += kBlockSteps) {
    const auto block = load_block(blocks, src, step, reinterpret_cast<T*>(s->block));
    const size_t count = split_block(block, s->codes + step * kLanes, rests);
    for (size_t i = 0; i < count; i++, out += bytes) store(out, Bits(rests[i] >> (8 * dropped)));
    words += static_cast<uint32_t>(count);
  }
  store(count_at, words);
  out = write_codes(coding.kernels, coding.model, values, s, out);
  return static_cast<size_t>(out - s->out.data());
}

template <typename T>
bool decode_lossless(const Coding<T>& coding, const EncodedChunk<T>& chunk, Scratch* s) {
  using Bits = typename Float<T>::Bits;
  const int values = chunk.values;
  Reader reader = {chunk.src + 1, chunk.src + chunk.size};
  uint8_t dropped = 0;
  uint32_t words = 0;
  if (!reader.read(&dropped) || !reader.read(&words) || dropped > kRestBytes<T>) return false;
  const auto bytes = static_cast<size_t>(kRestBytes<T> - dropped);
  const uint8_t* rest = reader.take(size_t{words} * bytes);
  if (rest == nullptr) return false;
  Decoding decoding = {};
  decoding.codes = s->codes;
  if (!open_codes(reader.next, reader.end, &decoding)) return false;
  if (!read_codes(coding.kernels, coding.model, values, s, &decoding)) return false;
  const int steps = coding.model.layout.lattice_of(values).steps;
  const Blocks blocks = {static_cast<uint64_t>(values), static_cast<uint64_t>(steps), steps, 0};
  const Bits kept = bytes == 0 ? 0 : ~Bits{0} >> (8 * (sizeof(Bits) - bytes));
  uint32_t used = 0;
  for (int step = 0; step < steps; step += kBlockSteps) {
    for (int lane = 0; lane < kLanes; lane++) {
      const size_t length = blocks.length(lane, step);
      for (size_t t = 0; t < length; t++) {
        const int code = s->codes[(step + static_cast<int>(t)) * kLanes + lane];
        Bits bits = 0;
        if (code != 0) {
          if (used++ == words) return false;
          const Bits stored = (load<Bits>(rest) & kept) << (8 * dropped);
          rest += bytes;
          if (!join_word<T>(code, dropped == kRestBytes<T> ? 0 : stored, &bits)) return false;
        }
        std::memcpy(chunk.dst + static_cast<size_t>(lane * steps + step) + t, &bits, sizeof(bits));
      }
    }
  }
  return used == words;
}

template void sample_lossless(const float*, const Blocks&, Scratch*);
template void sample_lossless(const double*, const Blocks&, Scratch*);
template size_t encode_lossless(const Coding<float>&, const float*, int, Scratch*);
template size_t encode_lossless(const Coding<double>&, const double*, int, Scratch*);
template bool decode_lossless(const Coding<float>&, const EncodedChunk<float>&, Scratch*);
template bool decode_lossless(const Coding<double>&, const EncodedChunk<double>&, Scratch*);

}  // namespace sz
