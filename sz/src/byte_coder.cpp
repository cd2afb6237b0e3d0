#include "byte_coder.hpp"

#include "entropy.hpp"
#include "huffman.hpp"
#include "length_table.hpp"

namespace sz {
namespace {

constexpr size_t kStreamSizes = kHuffmanStreams * sizeof(uint16_t);

// True if a sample of four runs is so even that a Huffman code would save next to nothing: low
// mantissa bits. Saves the time of the whole histogram.
bool looks_random(const Kernels& kernels, const uint8_t* src, size_t count) {
  constexpr size_t kRun = 1024, kRuns = 4;
  if (count < 4 * kRuns * kRun) return false;
  uint8_t sample[kRuns * kRun];
  for (size_t i = 0; i < kRuns; i++) {
    std::memcpy(sample + i * kRun, src + i * (count / kRuns), kRun);
  }
  uint32_t counts[256];
  kernels.histogram(sample, sizeof(sample), counts);
  return entropy_size(counts) > sizeof(sample) * 256 * 79 / 10;
}

uint8_t* write_huffman(const Kernels& kernels, const uint8_t* lengths, const uint8_t* src,
                       size_t count, uint8_t* dst) {
  uint32_t codes[256];
  huffman_codes(lengths, codes);
  uint8_t* sizes = write_length_table(lengths, dst);
  uint8_t* at = sizes + kStreamSizes;
  const size_t quarter = (count + kHuffmanStreams - 1) / kHuffmanStreams;
  for (size_t s = 0; s < kHuffmanStreams; s++) {
    const size_t first = s * quarter < count ? s * quarter : count;
    const size_t last = first + quarter < count ? first + quarter : count;
    uint8_t* end = kernels.huffman_encode(src + first, last - first, codes, at);
    sizes = store(sizes, static_cast<uint16_t>(end - at));
    at = end;
  }
  return at;
}

bool read_huffman(const Kernels& kernels, Reader* reader, uint8_t* dst, size_t count) {
  uint8_t lengths[256];
  uint16_t table[kHuffmanTable];
  if (!read_length_table(reader, lengths) || !huffman_table(lengths, table)) return false;
  uint16_t sizes[kHuffmanStreams];
  for (uint16_t& size : sizes) {
    if (!reader->read(&size)) return false;
  }
  HuffmanInput streams[kHuffmanStreams];
  for (int s = 0; s < kHuffmanStreams; s++) {
    streams[s] = {reader->take(sizes[s]), sizes[s]};
    if (streams[s].begin == nullptr) return false;
  }
  return kernels.huffman_decode(streams, table, dst, count);
}

}  // namespace

void plan_section(const uint32_t* counts, size_t count, SectionPlan* plan) {
  plan->kind = SectionPlan::kRaw;
  plan->size = 1 + count;
  const uint32_t used = used_symbols(counts);
  if (used == 1 && count > 1) {
    plan->kind = SectionPlan::kConstant;
    plan->size = 2;
  }
  if (used < 2) return;
  huffman_lengths(counts, plan->lengths);
  size_t bits = 0;
  for (int s = 0; s < 256; s++) bits += size_t{counts[s]} * plan->lengths[s];
  uint8_t table[kLargestLengthTable];
  const auto table_size = static_cast<size_t>(write_length_table(plan->lengths, table) - table);
  const size_t size = 1 + table_size + kStreamSizes + bits / 8 + kHuffmanStreams;
  if (size < plan->size) {
    plan->kind = SectionPlan::kHuffman;
    plan->size = size;
  }
}

uint8_t* write_section(const Kernels& kernels, const SectionPlan& plan, const uint8_t* src,
                       size_t count, uint8_t* dst) {
  if (count == 0) return dst;
  *dst++ = plan.kind;
  switch (plan.kind) {
    case SectionPlan::kRaw:
      std::memcpy(dst, src, count);
      return dst + count;
    case SectionPlan::kConstant:
      *dst++ = src[0];
      return dst;
    case SectionPlan::kHuffman:
      return write_huffman(kernels, plan.lengths, src, count, dst);
  }
  return dst;
}

uint8_t* encode_section(const Kernels& kernels, const uint8_t* src, size_t count, uint8_t* dst) {
  if (count == 0) return dst;
  SectionPlan plan = {SectionPlan::kRaw, 1 + count, {}};
  if (!looks_random(kernels, src, count)) {
    uint32_t counts[256];
    kernels.histogram(src, count, counts);
    plan_section(counts, count, &plan);
  }
  return write_section(kernels, plan, src, count, dst);
}

bool decode_section(const Kernels& kernels, Reader* reader, uint8_t* dst, size_t count) {
  if (count == 0) return true;
  uint8_t kind = 0;
  if (!reader->read(&kind)) return false;
  if (kind == SectionPlan::kRaw) {
    const uint8_t* bytes = reader->take(count);
    if (bytes == nullptr) return false;
    std::memcpy(dst, bytes, count);
    return true;
  }
  if (kind == SectionPlan::kConstant) {
    uint8_t symbol = 0;
    if (!reader->read(&symbol)) return false;
    std::memset(dst, symbol, count);
    return true;
  }
  return kind == SectionPlan::kHuffman && read_huffman(kernels, reader, dst, count);
}

}  // namespace sz
