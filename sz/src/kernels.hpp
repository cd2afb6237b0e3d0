// The inner loops, as a table of functions: one table an instruction set, the same bytes from all.
// This header is included by files built with wider instructions than the rest, so it holds no
// inline functions: the linker could keep their copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sz {

constexpr int kGroupValues = 256;  // values quantised together
constexpr int kChunkValues = 65536;
constexpr int kChunkGroups = kChunkValues / kGroupValues;
constexpr int kPadding = 64;  // bytes a kernel may read or write past the end of a scratch buffer
constexpr int kLargestShift = 13;
constexpr float kCodeLimit = 16382.0f;  // |x / step| above this is stored exactly

// Decoded values are code * step, or (|code| - 1/2) * step with the code's sign if keep_sign.
struct Grid {
  float step;
  float inverse;    // 1 / step
  float threshold;  // the encoder accepts |x - y| <= threshold
  bool keep_sign;
};

// How a group's codes become the unsigned residuals that are stored.
enum Transform : uint8_t { kPositive = 0, kSigned = 1, kDelta = 2 };

// Of the codes of one group; `delta` is against the code before.
struct CodeSums {
  uint32_t magnitude;
  uint32_t delta;
  bool negative;
};

// Statistics of one chunk by lanes: value i goes to lane i % 8, so that every instruction set
// adds in the same order.
struct LaneSums {
  double sum[8];
  double squares[8];
  float min[8];
  float max[8];
  uint64_t nonzeros;
};

constexpr int kHuffmanBits = 11;  // longest code
constexpr int kHuffmanStreams = 4;
constexpr int kHuffmanTable = 1 << kHuffmanBits;

struct HuffmanInput {
  const uint8_t* begin;
  size_t size;
};

struct Kernels {
  // Quantises kGroupValues values. Bit i of mask is set if code i is not 0; these codes go to
  // `codes` in order. Returns how many. A value outside the bound gets code 0 and sets *exceptions.
  int (*quantize)(const float* src, const Grid& grid, uint8_t* mask, int16_t* codes,
                  bool* exceptions);
  // The way back, for kGroupValues values.
  void (*dequantize)(const int16_t* codes, const uint8_t* mask, const Grid& grid, float* dst);

  // codes[-1] holds the code before the group's first. May clear codes[count] and after.
  CodeSums (*measure)(int16_t* codes, int count);
  void (*to_residuals)(Transform transform, const int16_t* codes, int count, uint16_t* residuals);
  void (*from_residuals)(Transform transform, const uint16_t* residuals, int count, int16_t* codes);

  // residual = symbol << shift | low bits; symbols saturate at 255. Returns true if any does.
  // May clear residuals[count] and after.
  bool (*split)(uint16_t* residuals, int count, int shift, uint8_t* symbols, uint8_t* low);
  void (*join)(const uint8_t* symbols, const uint8_t* low, int count, int shift,
               uint16_t* residuals);

  // Packs the low 1, 2 or 4 bits of symbols into bytes, the first in the lowest bits.
  void (*pack)(const uint8_t* symbols, size_t count, int bits, uint8_t* dst);
  void (*unpack)(const uint8_t* src, size_t count, int bits, uint8_t* symbols);

  void (*histogram)(const uint8_t* src, size_t count, uint32_t* counts);
  // Writes one bit stream; an entry of `codes` is length << 16 | code. Returns its end.
  uint8_t* (*huffman_encode)(const uint8_t* src, size_t count, const uint32_t* codes, uint8_t* dst);
  // Reads kHuffmanStreams streams, each a quarter (rounded up) of the symbols; an entry of `table`
  // is symbol << 8 | length. False if a stream does not end where its symbols do.
  bool (*huffman_decode)(const HuffmanInput* streams, const uint16_t* table, uint8_t* dst,
                         size_t count);

  // Adds `count` values, the first of which belongs to lane 0.
  void (*accumulate)(const float* src, size_t count, LaneSums* sums);

  // Lossless chunks: kGroupValues words to mask and non-zero words, and back.
  int (*compact)(const uint32_t* src, uint8_t* mask, uint32_t* words);
  void (*expand)(const uint32_t* words, const uint8_t* mask, uint32_t* dst);
};

extern const Kernels kScalarKernels;
#if defined(__x86_64__) || defined(_M_X64)
#define SZ_HAS_AVX2 1
extern const Kernels kAvx2Kernels;
#endif

}  // namespace sz
