// The reference kernels, in portable C++: what FORMAT.md says, one value at a time.
#include <cstring>

#include "kernels.hpp"
#include "quantizer.hpp"

namespace sz {
namespace {

#include "huffman_kernels.inl"

int quantize(const float* src, const Grid& grid, uint8_t* mask, int16_t* codes, bool* exceptions) {
  int count = 0;
  bool all_good = true;
  std::memset(mask, 0, kGroupValues / 8);
  for (int i = 0; i < kGroupValues; i++) {
    int code = 0;
    all_good = quantize_value(src[i], grid, &code) && all_good;
    codes[count] = static_cast<int16_t>(code);
    count += code != 0;
    mask[i / 8] = static_cast<uint8_t>(mask[i / 8] | (code != 0) << (i % 8));
  }
  *exceptions = !all_good;
  return count;
}

void dequantize(const int16_t* codes, const uint8_t* mask, const Grid& grid, float* dst) {
  for (int i = 0; i < kGroupValues; i++) {
    const int set = mask[i / 8] >> (i % 8) & 1;
    dst[i] = set != 0 ? dequantize_value(*codes, grid) : 0.0f;
    codes += set;
  }
}

int16_t subtract(int16_t a, int16_t b) {
  return static_cast<int16_t>(a - b);
}

CodeSums measure(int16_t* codes, int count) {
  CodeSums sums = {0, 0, false};
  for (int i = 0; i < count; i++) {
    const int difference = subtract(codes[i], codes[i - 1]);
    sums.magnitude += static_cast<uint32_t>(codes[i] < 0 ? -codes[i] : codes[i]);
    sums.delta += static_cast<uint32_t>(difference < 0 ? -difference : difference);
    sums.negative = sums.negative || codes[i] < 0;
  }
  return sums;
}

// 0, -1, 1, -2, ... to 0, 1, 2, 3, ... and back, modulo 2^16.
uint16_t fold(int16_t v) {
  return static_cast<uint16_t>((v < 0 ? 0xffff : 0) ^ (v * 2));
}
int16_t unfold(uint16_t u) {
  return static_cast<int16_t>(u >> 1 ^ ((u & 1) != 0 ? 0xffff : 0));
}

void to_residuals(Transform transform, const int16_t* codes, int count, uint16_t* residuals) {
  for (int i = 0; i < count; i++) {
    if (transform == kPositive) {
      residuals[i] = static_cast<uint16_t>(codes[i] - 1);
    } else if (transform == kSigned) {
      residuals[i] = static_cast<uint16_t>(fold(codes[i]) - 1);
    } else {
      residuals[i] = fold(subtract(codes[i], codes[i - 1]));
    }
  }
}

void from_residuals(Transform transform, const uint16_t* residuals, int count, int16_t* codes) {
  for (int i = 0; i < count; i++) {
    if (transform == kPositive) {
      codes[i] = static_cast<int16_t>(residuals[i] + 1);
    } else if (transform == kSigned) {
      codes[i] = unfold(static_cast<uint16_t>(residuals[i] + 1));
    } else {
      codes[i] = static_cast<int16_t>(codes[i - 1] + unfold(residuals[i]));
    }
  }
}

bool split(uint16_t* residuals, int count, int shift, uint8_t* symbols, uint8_t* low) {
  uint64_t bits = 0;
  int fill = 0;
  bool saturated = false;
  for (int i = 0; i < count; i++) {
    const uint32_t high = static_cast<uint32_t>(residuals[i]) >> shift;
    symbols[i] = static_cast<uint8_t>(high < 255 ? high : 255);
    saturated = saturated || high >= 255;
    bits |= static_cast<uint64_t>(residuals[i] & ((1u << shift) - 1)) << fill;
    for (fill += shift; fill >= 8; fill -= 8) {
      *low++ = static_cast<uint8_t>(bits);
      bits >>= 8;
    }
  }
  if (fill > 0) *low = static_cast<uint8_t>(bits);
  return saturated;
}

void join(const uint8_t* symbols, const uint8_t* low, int count, int shift, uint16_t* residuals) {
  uint64_t bits = 0;
  int fill = 0;
  for (int i = 0; i < count; i++) {
    for (; fill < shift; fill += 8) bits |= static_cast<uint64_t>(*low++) << fill;
    const uint32_t rest = static_cast<uint32_t>(bits) & ((1u << shift) - 1);
    residuals[i] = static_cast<uint16_t>(static_cast<uint32_t>(symbols[i]) << shift | rest);
    bits >>= shift;
    fill -= shift;
  }
}

void pack(const uint8_t* symbols, size_t count, int bits, uint8_t* dst) {
  const size_t per_byte = static_cast<size_t>(8 / bits);
  const uint32_t ones = (1u << bits) - 1;
  for (size_t i = 0; i < count; i += per_byte) {
    uint32_t byte = 0;
    for (size_t j = 0; j < per_byte && i + j < count; j++) {
      byte |= (symbols[i + j] & ones) << (static_cast<int>(j) * bits);
    }
    *dst++ = static_cast<uint8_t>(byte);
  }
}

void unpack(const uint8_t* src, size_t count, int bits, uint8_t* symbols) {
  const size_t per_byte = static_cast<size_t>(8 / bits);
  const uint32_t ones = (1u << bits) - 1;
  for (size_t i = 0; i < count; i++) {
    const int at = static_cast<int>(i % per_byte) * bits;
    symbols[i] = static_cast<uint8_t>(src[i / per_byte] >> at & ones);
  }
}

void accumulate(const float* src, size_t count, LaneSums* sums) {
  for (size_t i = 0; i < count; i++) {
    const size_t lane = i % 8;
    const float x = src[i];
    sums->nonzeros += float_bits(x) << 1 != 0;
    if ((float_bits(x) & 0x7f800000u) == 0x7f800000u) continue;
    sums->sum[lane] += static_cast<double>(x);
    sums->squares[lane] += static_cast<double>(x) * static_cast<double>(x);
    sums->min[lane] = x < sums->min[lane] ? x : sums->min[lane];
    sums->max[lane] = x > sums->max[lane] ? x : sums->max[lane];
  }
}

int compact(const uint32_t* src, uint8_t* mask, uint32_t* words) {
  int count = 0;
  for (int byte = 0; byte < kGroupValues / 8; byte++) {
    uint32_t bits = 0;
    for (int i = 0; i < 8; i++) {
      const uint32_t word = src[byte * 8 + i];
      words[count] = word;
      count += word != 0;
      bits |= static_cast<uint32_t>(word != 0) << i;
    }
    mask[byte] = static_cast<uint8_t>(bits);
  }
  return count;
}

void expand(const uint32_t* words, const uint8_t* mask, uint32_t* dst) {
  for (int i = 0; i < kGroupValues; i++) {
    const uint32_t set = mask[i / 8] >> (i % 8) & 1u;
    dst[i] = *words & (0u - set);
    words += set;
  }
}

}  // namespace

const Kernels kScalarKernels = {
    quantize, dequantize, measure,        to_residuals,   from_residuals, split,   join,   pack,
    unpack,   histogram,  huffman_encode, huffman_decode, accumulate,     compact, expand,
};

}  // namespace sz
