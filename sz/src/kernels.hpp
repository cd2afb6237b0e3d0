// The inner loops, as a table of functions: one table an instruction set, the same bytes from all.
// This header is included by files built with wider instructions than the rest, so it holds no
// inline functions: the linker could keep their copy.
//
// A chunk is coded in 32 lanes side by side. Lane l has the values l * steps to (l + 1) * steps - 1
// of the chunk; at step t every lane codes its value t. Codes are kept in the order of coding,
// codes[t * kLanes + l], so that one vector instruction serves many lanes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sz {

constexpr int kLanes = 32;
constexpr int kMaxSteps = 4096;
constexpr int kMaxChunk = kLanes * kMaxSteps;  // values
// Steps that are quantised and restored together; codes have room for whole blocks.
constexpr int kBlockSteps = 16;
constexpr int kPadding = 64;  // bytes a kernel may read past the end of the coded words
// |x| / step above this is stored as an exception. Whatever the dither, |code| is then at most 16382:
// differences of two codes, and the symbols of their residuals, fit 16 bits.
constexpr int kCodeLimit = 16380;

// Codes up to this keep the bound whatever the rounding: a step is short of two bounds by one in 2^10,
// and five operations round by at most 512 * 2^-24 steps each.
constexpr int kSureCodes = 512;

// --- the model (FORMAT.md, "Contexts" and "Symbols") ---

constexpr int kLevels = 6;  // of activity
constexpr int kNearby = 2;  // predictions are told apart up to this magnitude
constexpr int kContexts = kLevels * (2 * kNearby + 1);
constexpr int kAlphabet = 64;
constexpr int kDirect = 32;         // residuals below have a symbol each; larger ones have raw bits
constexpr int kLargestSymbol = 54;  // but for the escape
constexpr int kEscape = 63;         // symbol of what a context's table lacks, with 16 raw bits
constexpr int kThresholds[kLevels - 1] = {1, 2, 4, 9, 24};  // least activity of levels 1, 2, ...

// --- the entropy coder (rANS) ---

constexpr int kProbabilityBits = 10;
constexpr int kProbabilityOne = 1 << kProbabilityBits;
constexpr uint32_t kLeastState = 1u << 15;  // states stay in [2^15, 2^31): signed compares work

// An encoder's table has frequency | start << 16 of each symbol; a decoder's has, of each slot,
// symbol | frequency << kSymbolBits | (slot - start) << kOffsetAt.
constexpr int kSymbolBits = 8;
constexpr int kSymbolMask = (1 << kSymbolBits) - 1;
constexpr int kFrequencyMask = 2 * kProbabilityOne - 1;
constexpr int kOffsetAt = kSymbolBits + kProbabilityBits + 1;

// How the values of a chunk lie. Codes are predicted from left, up, up-left and up-right.
struct Lattice {
  int steps;   // of each lane
  int row;     // values in a row, a divisor of steps; `steps` if nothing is above
  int period;  // rows in a plane; the first has nothing above. 0: unknown
  bool left;   // predict at all
};

// Lanes [0, full) have all their steps; lane `full` has `partial` of them; the others have none.
struct Lanes {
  int full;
  int partial;
};

// How far apart decoded values of one sign are. T: float or double.
template <typename T>
struct Scale {
  T step;
  T inverse;    // 1 / step
  T threshold;  // the encoder accepts |x - y| <= threshold
};

// What becomes of the signs of values.
enum class Signs : uint8_t {
  Lost,   // small values may become zero
  Kept,   // none does
  Scaled  // nor here, and negative values have a scale of their own and no dither
};
constexpr int kSigns = 3;

// What codes mean: values.inl. Unless signs are scaled, both scales are the same.
template <typename T>
struct Grid {
  Scale<T> positive;
  Scale<T> negative;
  Signs signs;
  bool dither;
  uint32_t seed;
  // Of codes from -8 to 7, at [code & 15]. A decoded value is base + dither * slope.
  T base[16];
  T slope[16];
};

// Where the lanes of a block begin: value t of lane l is at values[l * stride + t], and its dither
// belongs to pair + l * pair_stride + t / 2.
template <typename T>
struct Block {
  T* values;
  int64_t stride;
  uint32_t pair;
  uint32_t pair_stride;
};

// Raw bits, written from the end to the front as rANS does, so that they are read forwards.
struct RawWriter {
  uint8_t* at;
  uint64_t bits;
  int fill;  // of `bits`, below 32 between calls
};
struct RawReader {
  const uint8_t* begin;
  uint64_t position;  // in bits
  uint64_t end;
};

// A coded chunk, as far as it is decoded. kPadding bytes after the words can be read.
struct Decoding {
  int16_t* codes;
  uint32_t states[kLanes];
  const uint8_t* words;
  const uint8_t* words_end;
  RawReader raw;
};

// Statistics of one chunk by lanes: value i goes to lane i % 8, so that every instruction set
// adds in the same order.
template <typename T>
struct LaneSums {
  double sum[8];
  double squares[8];
  T min[8];
  T max[8];
  uint64_t nonzeros;
};

template <typename T>
struct ValueKernels {
  // Quantises kBlockSteps steps. A value outside the bound gets code 0; returns false if any does.
  bool (*quantize)(const Block<const T>& block, const Grid<T>& grid, int16_t* codes);
  // The way back.
  void (*dequantize)(const int16_t* codes, const Grid<T>& grid, const Block<T>& block);
  // Adds `count` values, the first of which belongs to lane 0.
  void (*accumulate)(const T* src, size_t count, LaneSums<T>* sums);
};

struct CoderKernels {
  // Counts each context's symbols: counts[context * kAlphabet + symbol].
  void (*count)(const int16_t* codes, const Lattice& lattice, const Lanes& lanes, uint32_t* counts);
  // Codes everything. `symbols` is a table by context and symbol, 0 for what is not in it. Words are written downwards from words_end, where kPadding bytes are
  // scratch; returns the first. Raw bits likewise.
  uint16_t* (*encode)(const int16_t* codes, const Lattice& lattice, const Lanes& lanes,
                      const uint32_t* symbols, uint32_t* states, uint16_t* words_end,
                      RawWriter* raw);
  // The way back; `slots` is a table by context and slot. False if a state is too large, the words or raw bits end early or the states do not come back to kLeastState.
  bool (*decode)(Decoding* chunk, const Lattice& lattice, const Lanes& lanes,
                 const uint32_t* slots);
};

// --- pairs: one symbol for two codes of a lane (FORMAT.md, "Pairs") ---

constexpr int kClasses = 16;  // of codes: 15 in a row, and
constexpr int kOutside = 15;  // that of all others
constexpr int kPairLevels = 6;
constexpr int kPairContexts = kPairLevels * kPairLevels;
constexpr int kPairAlphabet = kClasses * kClasses;
constexpr int kPairEscape = kPairAlphabet - 1;
constexpr int kPairTable = kPairContexts * kPairAlphabet;
constexpr uint32_t kEscapedPair = 1u << 15;  // flag in the encoder's table

struct Classes {
  int least;                // code of class 0, from -127 to 112
  uint8_t level[kClasses];  // not falling
};

// A chunk as pairs see it. `plane` is a multiple of the distance, or `steps` if planes are unknown.
struct PairLattice {
  int steps;
  int distance;  // of rows
  int plane;     // steps in one
};

// `classes` begins with a step that is not there.
struct PairScratch {
  alignas(64) uint16_t indices[kMaxChunk / 2 + kLanes];
  alignas(64) uint8_t classes[kMaxChunk + 4 * kLanes];
};

struct PairKernels {
  // Fills scratch->indices: context * kPairAlphabet + symbol of each pair of all lanes. Codes past the
  // last step are read if steps is odd.
  void (*index)(const int16_t* codes, const PairLattice& lattice, const Classes& classes,
                PairScratch* scratch);
  // As in CoderKernels, but what is not in the table has the entry of its context's escape, flagged
  // kEscapedPair.
  uint16_t* (*encode)(const int16_t* codes, const PairLattice& lattice, const Lanes& lanes,
                      const uint32_t* symbols, const Classes& classes, PairScratch* scratch,
                      uint32_t* states, uint16_t* words_end, RawWriter* raw);
  bool (*decode)(Decoding* chunk, const PairLattice& lattice, const Lanes& lanes,
                 const uint32_t* slots, const Classes& classes, PairScratch* scratch);
};

struct Kernels {
  const ValueKernels<float>& float32;
  const ValueKernels<double>& float64;
  const CoderKernels& coder;
  const PairKernels& pairs;
};

extern const PairKernels kScalarPairs;
extern const Kernels kScalarKernels;
#if defined(__x86_64__) || defined(_M_X64)
#define SZ_HAS_WIDE_KERNELS 1
extern const ValueKernels<float> kAvx2Float32;
extern const ValueKernels<double> kAvx2Float64;
extern const CoderKernels kAvx2Coder;
extern const PairKernels kAvx2Pairs;
extern const ValueKernels<float> kAvx512Float32;
extern const ValueKernels<double> kAvx512Float64;
extern const CoderKernels kAvx512Coder;
extern const PairKernels kAvx512Pairs;
#endif

}  // namespace sz
