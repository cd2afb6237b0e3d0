// Whole streams: a header, a table of chunk sizes, and the chunks in order.
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "bytes.hpp"
#include "chunk.hpp"
#include "context.hpp"
#include "dispatch.hpp"
#include "header.hpp"
#include "quantizer.hpp"
#include "statistics.hpp"
#include "sz/sz.hpp"

namespace sz {
namespace {

int chunk_size(uint64_t chunk, uint64_t count) {
  const uint64_t left = count - chunk * kChunkValues;
  return static_cast<int>(left < kChunkValues ? left : kChunkValues);
}

// Threads that are worth starting for this many chunks.
int useful_threads(int asked, uint64_t chunks) {
#ifdef _OPENMP
  const int most = asked > 0 ? asked : omp_get_max_threads();
#else
  const int most = asked > 0 ? 1 : 1;
#endif
  if (chunks < static_cast<uint64_t>(most)) return chunks > 0 ? static_cast<int>(chunks) : 1;
  return most;
}

int this_thread() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

void check_options(const Options& options) {
  if (!(options.error_bound >= 0) || std::isinf(options.error_bound)) {
    throw ArgumentError("sz: error_bound: is " + std::to_string(options.error_bound) +
                        ", must be finite and not negative");
  }
  if (options.threads < 0) throw ArgumentError("sz: threads: is negative; 0 means the default");
  if (options.row_length < 0) {
    throw ArgumentError("sz: row_length: is negative; 0 means unknown");
  }
}

// Everything that the chunks of one compression share.
struct Job {
  const Kernels& kernels;
  const Grid* grid;  // null: lossless
  const float* src;
  uint64_t count;
  uint8_t* table;  // of chunk sizes
  uint8_t* chunks;
  size_t room;  // bytes from `chunks` on

  size_t used = 0;  // handed out in chunk order
  std::atomic<bool> full{false};
};

void encode_into_scratch(Job* job, uint64_t chunk, Scratch* scratch, size_t* size, LaneSums* sums) {
  const float* src = job->src + chunk * kChunkValues;
  const int values = chunk_size(chunk, job->count);
  if (sums != nullptr) {
    *sums = empty_sums();
    job->kernels.accumulate(src, static_cast<size_t>(values), sums);
  }
  *size = encode_chunk(job->kernels, job->grid, src, values, scratch);
}

// Gives a chunk its place; null if it does not fit. Called in chunk order.
uint8_t* reserve(Job* job, uint64_t chunk, size_t size) {
  if (job->full || size > job->room - job->used) {
    job->full = true;
    return nullptr;
  }
  store(job->table + chunk * sizeof(uint32_t), static_cast<uint32_t>(size));
  uint8_t* place = job->chunks + job->used;
  job->used += size;
  return place;
}

void compress_chunks(Job* job, Context::Impl* context, bool statistics, int threads) {
  const auto chunks = static_cast<int64_t>(count_chunks(job->count));
  context->reserve_threads(threads);
  context->sums.resize(statistics ? static_cast<size_t>(chunks) : 0);
#pragma omp parallel for ordered schedule(dynamic, 1) num_threads(threads) if (threads > 1)
  for (int64_t i = 0; i < chunks; i++) {
    Scratch* scratch = context->scratch[static_cast<size_t>(this_thread())].get();
    LaneSums* sums = statistics ? &context->sums[static_cast<size_t>(i)] : nullptr;
    const auto chunk = static_cast<uint64_t>(i);
    size_t size = 0;
    if (!job->full) encode_into_scratch(job, chunk, scratch, &size, sums);
    uint8_t* place = nullptr;
#pragma omp ordered
    place = reserve(job, chunk, size);
    if (place != nullptr) std::memcpy(place, scratch->out, size);
  }
}

Statistics total_statistics(const Context::Impl& context, uint64_t count) {
  Statistics total;
  total.min = std::numeric_limits<float>::infinity();
  total.max = -total.min;
  for (size_t chunk = 0; chunk < context.sums.size(); chunk++) {
    add_chunk(context.sums[chunk], static_cast<size_t>(chunk_size(chunk, count)), &total);
  }
  if (total.min > total.max) total.min = total.max = 0;
  return total;
}

}  // namespace

size_t max_compressed_size(size_t count, size_t dims) {
  return kFixedHeader + 8 * dims + 5 * static_cast<size_t>(count_chunks(count)) + 4 * count;
}

size_t compress(Context& context, const float* src, const std::vector<int64_t>& shape,
                const Options& options, uint8_t* dst, size_t capacity, Statistics* statistics) {
  check_options(options);
  const Kernels& kernels = kernels_for(options.isa);
  Header header;
  header.count = count_values(shape);
  header.chunks = count_chunks(header.count);
  header.shape = shape;
  header.keep_sign = options.keep_sign;
  header.error_bound = options.error_bound;
  Grid grid = {};
  const bool lossless = needs_lossless(options.error_bound);
  if (!lossless) grid = make_grid(options.error_bound, options.keep_sign);
  header.step = grid.step;

  const size_t header_size = kFixedHeader + 8 * shape.size();
  const size_t table_size = header.chunks * sizeof(uint32_t);
  if (capacity < header_size || capacity - header_size < table_size) return 0;
  write_header(header, dst);
  Job job = {kernels,
             lossless ? nullptr : &grid,
             src,
             header.count,
             dst + header_size,
             dst + header_size + table_size,
             capacity - header_size - table_size};
  compress_chunks(&job, &context.impl(), statistics != nullptr,
                  useful_threads(options.threads, header.chunks));
  if (job.full) return 0;
  if (statistics != nullptr) *statistics = total_statistics(context.impl(), header.count);
  return header_size + table_size + job.used;
}

void decompress(Context& context, const uint8_t* src, size_t size, float* dst, size_t count,
                int threads, Isa isa) {
  const Kernels& kernels = kernels_for(isa);
  const Header header = read_header(src, size);
  if (header.count != count) {
    throw ArgumentError("sz: count: is " + std::to_string(count) + ", the stream holds " +
                        std::to_string(header.count) + " values");
  }
  const Grid grid = decoding_grid(header.step, header.keep_sign);
  const Grid* used_grid = header.step > 0 ? &grid : nullptr;
  Context::Impl& impl = context.impl();
  std::vector<size_t>& offsets = impl.offsets;
  offsets.resize(header.chunks + 1);
  offsets[0] = header.size + header.chunks * sizeof(uint32_t);
  for (uint64_t i = 0; i < header.chunks; i++) {
    offsets[i + 1] = offsets[i] + load<uint32_t>(src + header.size + i * sizeof(uint32_t));
  }
  const int team = useful_threads(threads, header.chunks);
  impl.reserve_threads(team);
  const auto chunks = static_cast<int64_t>(header.chunks);
  std::atomic<int64_t> bad{-1};
#pragma omp parallel for schedule(dynamic, 1) num_threads(team) if (team > 1)
  for (int64_t i = 0; i < chunks; i++) {
    if (bad >= 0) continue;
    const auto chunk = static_cast<size_t>(i);
    Scratch* scratch = impl.scratch[static_cast<size_t>(this_thread())].get();
    const bool good =
        decode_chunk(kernels, used_grid, src + offsets[chunk], offsets[chunk + 1] - offsets[chunk],
                     dst + chunk * kChunkValues, chunk_size(chunk, count), scratch);
    if (!good) bad = i;
  }
  if (bad >= 0) throw Error("sz: malformed stream: chunk " + std::to_string(bad) + " is damaged");
}

Info read_info(const uint8_t* src, size_t size) {
  const Header header = read_header(src, size);
  Info info;
  info.version = 1;
  info.dtype = "float32";
  info.shape = header.shape;
  info.count = header.count;
  info.error_bound = header.error_bound;
  info.keep_sign = header.keep_sign;
  info.raw_bytes = 4 * header.count;
  info.compressed_bytes = size;
  info.chunks = header.chunks;
  return info;
}

}  // namespace sz
