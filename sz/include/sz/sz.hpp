// sz: error-bounded compression of float arrays, made for the activations of neural networks.
//
// For: float32 and float64 arrays of any shape, a bound on every value's error, and speed of the order
// of memory. Data with many exact zeros (after a ReLU) is what it does best.
// Not for: archives that must outlive format changes, strings, integers.
//
// Contract, for every value x and its decoded value y:
//   finite x         |x - y| <= error bound, measured on the decoded value in its own type
//   x == 0           y == 0; -0.0 may become +0.0 unless the bound is 0
//   keep_sign        y > 0 where x > 0, y < 0 where x < 0 (so a ReLU mask survives)
//   negative_factor  where x < 0, |x - y| <= negative_factor * error bound instead
//   NaN, infinities  the same bits
//   bound 0          the same bits for every value
// The same input gives the same bytes whatever the thread count or instruction set.
// The bytes are described in FORMAT.md. C callers: sz.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sz {

// Any failure: a malformed stream, or (the subclass) an argument that makes no sense.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class ArgumentError : public Error {
 public:
  using Error::Error;
};

// Which kernels to run. Auto takes the best this processor has; the others are for tests.
enum class Isa { Auto, Scalar, Avx2, Avx512 };

// True if kernels of this set are built in and this processor can run them.
bool supported(Isa isa);

// Unit of Options::error_bound.
enum class Bound {
  Absolute,  // the values' own
  Range      // the difference of the largest and the smallest finite value
};

struct Options {
  double error_bound = 0;  // finite, not negative; 0: lossless
  Bound bound = Bound::Absolute;
  bool keep_sign = false;
  // The bound of negative values in error bounds, 1 to 1024; other than 1 it needs keep_sign, and
  // leaves negative values without dither. For values of which the negative side matters less, such
  // as what a ReLU reads.
  double negative_factor = 1;
  // Subtractive dither: the errors of non-zero values are uniform and independent of the values at
  // any bound, for about a quarter of a bit a value more. Keyed by seed and index. Not for negative
  // values if negative_factor is not 1.
  bool dither = false;
  uint32_t seed = 0;
  int64_t row_length = 0;  // values in a row, for prediction; 0: the last axis
  bool checksum = false;   // let decoding find damage
  int threads = 0;         // 0: OpenMP's default
  Isa isa = Isa::Auto;
};

// By-products of compressing, of the original values. Bit-identical on any thread count or
// instruction set.
struct Statistics {
  uint64_t count = 0;
  uint64_t nonzeros = 0;   // NaN and infinities included
  double sum = 0;          // of the finite values
  double sum_squares = 0;  // of the finite values
  double min = 0;          // of the finite values, zeros included; 0 if there is none
  double max = 0;
};

// Type of a stream's values.
enum class Type { Float32, Float64 };

// What a stream's header says.
struct Info {
  int version = 0;
  Type type = Type::Float32;
  std::vector<int64_t> shape;
  uint64_t count = 0;      // product of shape
  double error_bound = 0;  // absolute
  double negative_factor = 1;
  bool keep_sign = false;
  bool dither = false;
  uint32_t seed = 0;
  bool checksum = false;
  uint64_t raw_bytes = 0;
  uint64_t compressed_bytes = 0;
  uint64_t chunks = 0;
  uint64_t chunk_values = 0;  // in each but the last
};

// Scratch memory, owned by the caller and reused from call to call: it grows to about 2 MB a
// thread and is not shrunk. One call at a time; one context per calling thread.
class Context {
 public:
  Context();
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Room that always suffices: a header, a few bytes a chunk, and the input.
size_t max_compressed_size(size_t count, size_t dims, Type type = Type::Float32);

// Compresses the product of `shape` values at src into dst. Returns the bytes written, or 0 if
// they did not fit `capacity` (dst is then unspecified). Throws ArgumentError.
size_t compress(Context& context, const float* src, const std::vector<int64_t>& shape,
                const Options& options, uint8_t* dst, size_t capacity,
                Statistics* statistics = nullptr);
size_t compress(Context& context, const double* src, const std::vector<int64_t>& shape,
                const Options& options, uint8_t* dst, size_t capacity,
                Statistics* statistics = nullptr);

// Fills dst with the `count` values of the stream. Throws ArgumentError if it has another number or
// type of values, Error if it is malformed; dst is then unspecified.
void decompress(Context& context, const uint8_t* src, size_t size, float* dst, size_t count,
                int threads = 0, Isa isa = Isa::Auto);
void decompress(Context& context, const uint8_t* src, size_t size, double* dst, size_t count,
                int threads = 0, Isa isa = Isa::Auto);

// Fills dst with the values [first, first + count) alone, decoding only the chunks they are in.
void decompress_range(Context& context, const uint8_t* src, size_t size, uint64_t first,
                      size_t count, float* dst, int threads = 0, Isa isa = Isa::Auto);
void decompress_range(Context& context, const uint8_t* src, size_t size, uint64_t first,
                      size_t count, double* dst, int threads = 0, Isa isa = Isa::Auto);

// Reads the header and checks that the chunks' sizes add up to `size`. Throws Error.
Info read_info(const uint8_t* src, size_t size);

}  // namespace sz
