// Streams to values: all of them, or those of a range.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "checksum.hpp"
#include "chunk.hpp"
#include "context.hpp"
#include "dispatch.hpp"
#include "header.hpp"
#include "quantizer.hpp"
#include "sz/sz.hpp"
#include "threads.hpp"

namespace sz {
namespace {

void list_offsets(const uint8_t* src, const Sections& sections, std::vector<size_t>* offsets) {
  const uint64_t chunks = sections.header.layout.chunks();
  offsets->resize(chunks + 1);
  (*offsets)[0] = sections.chunks;
  for (uint64_t i = 0; i < chunks; i++) {
    const uint8_t* entry = src + sections.table + i * sections.header.entry_bytes();
    (*offsets)[i + 1] = (*offsets)[i] + load<uint32_t>(entry);
  }
}

template <typename T>
void check_request(const Header& header, uint64_t first, uint64_t count) {
  if (header.type != kTypeOf<T>) {
    throw ArgumentError(std::string("sz: type: the stream holds ") +
                        (header.type == Type::Float32 ? "float32" : "float64") + " values");
  }
  if (first > header.layout.count || count > header.layout.count - first) {
    throw ArgumentError("sz: range: values " + std::to_string(first) + " to " +
                        std::to_string(first + count) + " of a stream that holds " +
                        std::to_string(header.layout.count));
  }
}

// What is asked of a stream, and where its chunks are.
template <typename T>
struct Request {
  Coding<T> coding;
  const Header& header;
  const uint8_t* src;
  size_t size;
  const uint8_t* table;
  const std::vector<size_t>& offsets;
  uint64_t first, count;
  T* dst;

  // A chunk that is decoded where it belongs; one that sticks out of the range goes to `part`.
  EncodedChunk<T> chunk(uint64_t index, std::vector<T>* part) const {
    const uint64_t at = index * header.layout.chunk_values();
    const int values = header.layout.values_of(index);
    const bool whole = at >= first && at + static_cast<uint64_t>(values) <= first + count;
    if (!whole) part->resize(static_cast<size_t>(values));
    return {src + offsets[index], offsets[index + 1] - offsets[index], at,
            whole ? dst + (at - first) : part->data(), values};
  }
  // Kernels read a little past the end of a chunk.
  bool is_near_end(uint64_t index) const { return size - offsets[index + 1] < kPadding; }
};

template <typename T>
bool is_sound(const Request<T>& request, const EncodedChunk<T>& chunk, uint64_t index) {
  if (!request.header.modelled && (chunk.size == 0 || chunk.src[0] != kRawChunk)) return false;
  if (!request.header.checksum) return true;
  return checksum_of(chunk.src, chunk.size) == load<uint32_t>(request.table + index * 8 + 4);
}

template <typename T>
bool decode_one(const Request<T>& request, uint64_t index, Scratch* scratch) {
  std::vector<T> part;
  EncodedChunk<T> chunk = request.chunk(index, &part);
  if (!is_sound(request, chunk, index)) return false;
  if (request.is_near_end(index)) {
    scratch->out.resize(chunk.size + kPadding);
    std::memcpy(scratch->out.data(), chunk.src, chunk.size);
    chunk.src = scratch->out.data();
  }
  if (!decode_chunk(request.coding, chunk, scratch)) return false;
  if (part.empty()) return true;
  const uint64_t end = chunk.first + static_cast<uint64_t>(chunk.values);
  const uint64_t from = std::max(chunk.first, request.first);
  const uint64_t to = std::min(end, request.first + request.count);
  std::memcpy(request.dst + (from - request.first), part.data() + (from - chunk.first),
              (to - from) * sizeof(T));
  return true;
}

template <typename T>
void decompress_values(Context& context, const uint8_t* src, size_t size, const Sections& sections,
                       uint64_t first, uint64_t count, T* dst, int threads, Isa isa) {
  const Kernels& kernels = kernels_for(isa);
  const Header& header = sections.header;
  const Layout& layout = header.layout;
  check_request<T>(header, first, count);
  if (count == 0) return;
  Context::Impl& impl = context.impl();
  const Grid<T> grid = grid_of(static_cast<T>(header.step), header.negative_factor,
                               header.keep_sign, header.dither, header.seed);
  impl.model.layout = layout;
  if (header.modelled) impl.model.set_decoder(sections.codes);
  list_offsets(src, sections, &impl.offsets);
  const Request<T> request = {{kernels, impl.model, header.step > 0 ? &grid : nullptr},
                              header,
                              src,
                              size,
                              src + sections.table,
                              impl.offsets,
                              first,
                              count,
                              dst};
  const uint64_t begin = first / layout.chunk_values();
  const uint64_t end = (first + count - 1) / layout.chunk_values() + 1;
  const int team = useful_threads(threads, end - begin);
  impl.reserve_threads(team);
  std::atomic<int64_t> bad{-1};
#pragma omp parallel for schedule(dynamic, 1) num_threads(team) if (team > 1)
  for (uint64_t chunk = begin; chunk < end; chunk++) {
    if (bad >= 0) continue;
    Scratch* scratch = impl.scratch[static_cast<size_t>(this_thread())].get();
    if (!decode_one(request, chunk, scratch)) bad = static_cast<int64_t>(chunk);
  }
  if (bad >= 0) throw Error("sz: malformed stream: chunk " + std::to_string(bad) + " is damaged");
}

template <typename T>
void decompress_all(Context& context, const uint8_t* src, size_t size, T* dst, size_t count,
                    int threads, Isa isa) {
  const Sections sections = read_sections(src, size);
  if (sections.header.layout.count != count) {
    throw ArgumentError("sz: count: is " + std::to_string(count) + ", the stream holds " +
                        std::to_string(sections.header.layout.count) + " values");
  }
  decompress_values(context, src, size, sections, 0, count, dst, threads, isa);
}

}  // namespace

void decompress(Context& context, const uint8_t* src, size_t size, float* dst, size_t count,
                int threads, Isa isa) {
  decompress_all(context, src, size, dst, count, threads, isa);
}

void decompress(Context& context, const uint8_t* src, size_t size, double* dst, size_t count,
                int threads, Isa isa) {
  decompress_all(context, src, size, dst, count, threads, isa);
}

void decompress_range(Context& context, const uint8_t* src, size_t size, uint64_t first,
                      size_t count, float* dst, int threads, Isa isa) {
  decompress_values(context, src, size, read_sections(src, size), first, count, dst, threads, isa);
}

void decompress_range(Context& context, const uint8_t* src, size_t size, uint64_t first,
                      size_t count, double* dst, int threads, Isa isa) {
  decompress_values(context, src, size, read_sections(src, size), first, count, dst, threads, isa);
}

Info read_info(const uint8_t* src, size_t size) {
  const Header header = read_sections(src, size).header;
  Info info;
  info.version = kVersion;
  info.type = header.type;
  info.shape = header.shape;
  info.count = header.layout.count;
  info.error_bound = header.error_bound;
  info.negative_factor = header.negative_factor;
  info.keep_sign = header.keep_sign;
  info.dither = header.dither;
  info.seed = header.seed;
  info.checksum = header.checksum;
  info.raw_bytes = (header.type == Type::Float64 ? 8 : 4) * header.layout.count;
  info.compressed_bytes = size;
  info.chunks = header.layout.chunks();
  info.chunk_values = header.layout.chunk_values();
  return info;
}

}  // namespace sz
