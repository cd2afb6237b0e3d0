// Values to streams: a header, what the coder expects, a table of chunk sizes, and the chunks in order.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "blocks.hpp"
#include "bytes.hpp"
#include "checksum.hpp"
#include "chunk.hpp"
#include "context.hpp"
#include "dispatch.hpp"
#include "header.hpp"
#include "quantizer.hpp"
#include "statistics.hpp"
#include "sz/sz.hpp"
#include "threads.hpp"

namespace sz {
namespace {

// A model costs more than it saves below.
constexpr uint64_t kFewestModelled = 64;

void check_options(const Options& options) {
  if (!(options.error_bound >= 0) || std::isinf(options.error_bound)) {
    throw ArgumentError("sz: error_bound: is " + std::to_string(options.error_bound) +
                        ", must be finite and not negative");
  }
  if (!(options.negative_factor >= 1 && options.negative_factor <= kLargestFactor)) {
    throw ArgumentError("sz: negative_factor: is " + std::to_string(options.negative_factor) +
                        ", must be from 1 to 1024");
  }
  if (options.negative_factor != 1 && !options.keep_sign) {
    throw ArgumentError("sz: negative_factor: is " + std::to_string(options.negative_factor) +
                        ", but other than 1 it needs keep_sign");
  }
  if (options.threads < 0) throw ArgumentError("sz: threads: is negative; 0 means the default");
  if (options.row_length < 0) {
    throw ArgumentError("sz: row_length: is negative; 0 means the last axis");
  }
}

// Difference of the largest and smallest finite value; 0 if there is none.
template <typename T>
double value_range(const T* src, uint64_t count) {
  T least = std::numeric_limits<T>::infinity(), most = -least;
  for (uint64_t i = 0; i < count; i++) {
    if (!std::isfinite(src[i])) continue;
    least = src[i] < least ? src[i] : least;
    most = src[i] > most ? src[i] : most;
  }
  if (least > most) return 0;
  const double range = static_cast<double>(most) - static_cast<double>(least);
  return std::isfinite(range) ? range : std::numeric_limits<double>::max();
}

constexpr uint64_t kProbes = 4099;  // values that are looked at first, all over the array

// Whether at least half of the chunks, judged by some values, have no more values out of the grid's
// range than they may. If not, the stream had better be lossless, with a model of its own.
template <typename T>
bool fits(const Grid<T>& grid, const T* src, uint64_t count) {
  const uint64_t stride = std::max<uint64_t>(count / kProbes, 1);
  uint64_t chunks = 0, misfitting = 0;
  for (uint64_t begin = 0; begin < count; chunks++) {
    const uint64_t end = std::min(begin + kMaxChunk / 2, count);
    size_t probes = 0, misfits = 0;
    for (; begin < end; begin += stride, probes++) {
      const Scale<T>& scale = src[begin] < 0 ? grid.negative : grid.positive;
      misfits += !(std::fabs(src[begin] * scale.inverse) <= static_cast<T>(kCodeLimit));
    }
    misfitting += misfits > most_exceptions(probes);
  }
  return 2 * misfitting <= chunks;
}

template <typename T>
class ArraySampler : public Sampler {
 public:
  ArraySampler(const Kernels& kernels, const Grid<T>* grid, const T* src, uint64_t count,
               Scratch* scratch)
      : kernels_(kernels), grid_(grid), src_(src), count_(count), scratch_(scratch) {}

  void sample(uint64_t begin, uint64_t stride, int steps) override {
    const Blocks lanes = {count_ - begin, stride, steps, begin};
    if (grid_ != nullptr) {
      sample_quantized(kernels_, *grid_, src_ + begin, lanes, scratch_);
    } else {
      sample_lossless(src_ + begin, lanes, scratch_);
    }
  }

 private:
  const Kernels& kernels_;
  const Grid<T>* grid_;
  const T* src_;
  uint64_t count_;
  Scratch* scratch_;
};

// Everything that the chunks of one compression share.
template <typename T>
struct Job {
  Coding<T> coding;
  const Header& header;
  const T* src;
  uint8_t* table;
  uint8_t* chunks;
  size_t room;  // bytes from `chunks` on

  size_t used = 0;  // handed out in chunk order
  std::atomic<bool> full{false};
};

// Gives a chunk its place; null if it does not fit. Called in chunk order.
template <typename T>
uint8_t* reserve(Job<T>* job, uint64_t chunk, size_t size) {
  if (job->full || size > job->room - job->used) {
    job->full = true;
    return nullptr;
  }
  store(job->table + chunk * job->header.entry_bytes(), static_cast<uint32_t>(size));
  uint8_t* place = job->chunks + job->used;
  job->used += size;
  return place;
}

template <typename T>
size_t encode_one(const Job<T>& job, uint64_t chunk, Scratch* scratch, Statistics* statistics) {
  const uint64_t first = chunk * job.header.layout.chunk_values();
  const int values = job.header.layout.values_of(chunk);
  const T* src = job.src + first;
  if (statistics != nullptr) {
    *statistics =
        chunk_statistics(kernels_of<T>(job.coding.kernels), src, static_cast<size_t>(values));
  }
  if (!job.header.modelled) return encode_raw(src, values, scratch);
  return encode_chunk(job.coding, src, first, values, scratch);
}

template <typename T>
void encode_chunks(Job<T>* job, Context::Impl* context, bool statistics, int threads) {
  const uint64_t chunks = job->header.layout.chunks();
  context->statistics.resize(statistics ? chunks : 0);
#pragma omp parallel for ordered schedule(dynamic, 1) num_threads(threads) if (threads > 1)
  for (uint64_t chunk = 0; chunk < chunks; chunk++) {
    Scratch* scratch = context->scratch[static_cast<size_t>(this_thread())].get();
    size_t size = 0;
    if (!job->full) {
      size = encode_one(*job, chunk, scratch, statistics ? &context->statistics[chunk] : nullptr);
    }
    uint8_t* place = nullptr;
#pragma omp ordered
    place = reserve(job, chunk, size);
    if (place == nullptr) continue;
    std::memcpy(place, scratch->out.data(), size);
    if (!job->header.checksum) continue;
    store(job->table + chunk * 8 + 4, checksum_of(place, size));
  }
}

template <typename T>
Header make_header(const T* src, const std::vector<int64_t>& shape, const Options& options) {
  Header h;
  h.type = kTypeOf<T>;
  h.shape = shape;
  h.layout.count = count_values(shape);
  h.keep_sign = options.keep_sign;
  h.dither = options.dither;
  h.seed = options.dither ? options.seed : 0;
  h.checksum = options.checksum;
  h.negative_factor = options.negative_factor;
  h.error_bound = options.error_bound;
  if (options.bound == Bound::Range) h.error_bound *= value_range(src, h.layout.count);
  return h;
}

struct Rows {
  uint64_t length, in_plane;
};

// What neighbours mean: the last two axes, unless the caller knows better.
Rows rows_of(const std::vector<int64_t>& shape, int64_t row_length) {
  const size_t dims = shape.size();
  if (row_length > 0) return {static_cast<uint64_t>(row_length), 0};
  if (dims < 2) return {0, 0};
  return {static_cast<uint64_t>(shape[dims - 1]),
          dims < 3 ? 0 : static_cast<uint64_t>(shape[dims - 2])};
}

template <typename T>
size_t compress_values(Context& context, const T* src, const std::vector<int64_t>& shape,
                       const Options& options, uint8_t* dst, size_t capacity,
                       Statistics* statistics) {
  check_options(options);
  const Kernels& kernels = kernels_for(options.isa);
  Context::Impl& impl = context.impl();
  impl.reserve_threads(1);
  Header header = make_header(src, shape, options);
  const uint64_t count = header.layout.count;
  Grid<T> grid = {};
  const Grid<T>* used_grid = nullptr;
  if (!needs_lossless<T>(header.error_bound)) {
    grid = make_grid<T>(header.error_bound, header.negative_factor, header.keep_sign, header.dither,
                        header.seed);
    if (fits(grid, src, count)) used_grid = &grid;
  }
  header.step = used_grid == nullptr ? 0 : static_cast<double>(grid.positive.step);

  uint8_t description[kLargestDescription];
  size_t description_size = 0;
  header.modelled = count >= kFewestModelled;
  const Rows rows = rows_of(shape, options.row_length);
  if (header.modelled) {
    ArraySampler<T> sampler(kernels, used_grid, src, count, impl.scratch[0].get());
    CodeModel codes;
    header.layout = fit_model(kernels, count, rows.length, rows.in_plane, &sampler,
                              {impl.scratch[0]->codes, &impl.scratch[0]->pairs}, &codes);
    header.pairs = codes.pairs;
    impl.model.layout = header.layout;
    impl.model.set_encoder(codes);
    description_size = static_cast<size_t>(write_code_model(codes, description) - description);
  } else {
    header.layout = make_layout(count, 0, 0, kAlone);
  }

  const size_t table_at = header.fixed_bytes() + description_size;
  const size_t chunks_at = table_at + header.layout.chunks() * header.entry_bytes();
  if (capacity < chunks_at) return 0;
  write_header(header, dst);
  std::memcpy(dst + header.fixed_bytes(), description, description_size);
  const int threads = useful_threads(options.threads, header.layout.chunks());
  impl.reserve_threads(threads);
  Job<T> job = {{kernels, impl.model, used_grid},
                header,
                src,
                dst + table_at,
                dst + chunks_at,
                capacity - chunks_at};
  encode_chunks(&job, &impl, statistics != nullptr, threads);
  if (job.full) return 0;
  if (statistics != nullptr) *statistics = total_statistics(impl.statistics);
  return chunks_at + job.used;
}

}  // namespace

size_t max_compressed_size(size_t count, size_t dims, Type type) {
  const size_t value = type == Type::Float64 ? 8 : 4;
  // The shortest lanes of a full chunk are over half of what is allowed, but for the last chunk.
  const size_t chunks = count / (kMaxChunk / 4) + 1;
  return kFixedHeader + 8 * dims + kFactorBytes + kLargestDescription + 9 * chunks + value * count;
}

size_t compress(Context& context, const float* src, const std::vector<int64_t>& shape,
                const Options& options, uint8_t* dst, size_t capacity, Statistics* statistics) {
  return compress_values(context, src, shape, options, dst, capacity, statistics);
}

size_t compress(Context& context, const double* src, const std::vector<int64_t>& shape,
                const Options& options, uint8_t* dst, size_t capacity, Statistics* statistics) {
  return compress_values(context, src, shape, options, dst, capacity, statistics);
}

}  // namespace sz
