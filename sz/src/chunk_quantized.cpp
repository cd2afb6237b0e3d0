// Quantised chunks: codes on one grid, a mask of the non-zero ones, and these as residuals, each
// split into a symbol that is entropy-coded and low bits that are not (FORMAT.md).
#include <cstring>

#include "byte_coder.hpp"
#include "chunk.hpp"
#include "classes.hpp"
#include "group.hpp"
#include "mask.hpp"
#include "quantizer.hpp"
#include "symbols.hpp"

namespace sz {
namespace {

// --- encoder ---

// The shift leaves symbols with a mean of 4 to 8, fine enough for the entropy coder: the bits cut
// off are then nearly uniform.
int shift_for(uint32_t sum, int count) {
  const uint32_t mean = sum / static_cast<uint32_t>(count);
  return mean < 8 ? 0 : 29 - __builtin_clz(mean);
}

// What has been encoded of a chunk so far.
struct Encoded {
  GroupInfo groups[kChunkGroups];
  size_t symbols = 0;
  size_t low_bytes = 0;
  size_t exceptions = 0;
  size_t large = 0;  // symbols of 255 and more
};

// Chooses the transform and shift of a group. Differences must win by an eighth: they dilute the
// statistics of the symbols of other groups.
GroupHeader choose_header(const CodeSums& sums, GroupInfo* info) {
  const uint32_t n = info->symbols;
  const uint32_t direct = sums.negative ? 2 * sums.magnitude - n : sums.magnitude - n;
  const uint32_t delta = 2 * sums.delta;
  const bool use_delta = 8 * delta < 7 * direct;
  const uint32_t sum = use_delta ? delta : direct;
  info->level = sum + n;
  const Transform transform = use_delta ? kDelta : sums.negative ? kSigned : kPositive;
  return {transform, shift_for(sum, info->symbols), 0};
}

bool add_exceptions(const Grid& grid, const float* src, int at, Scratch* s, Encoded* e) {
  for (int i = 0; i < kGroupValues; i++) {
    int code = 0;
    if (quantize_value(src[i], grid, &code)) continue;
    if (e->exceptions == kMaxExceptions) return false;
    s->exception_at[e->exceptions] = static_cast<uint16_t>(at + i);
    s->exception_bits[e->exceptions++] = float_bits(src[i]);
  }
  return true;
}

bool add_large_symbols(const uint8_t* symbols, int shift, GroupInfo* info, Scratch* s, Encoded* e) {
  for (int i = 0; i < info->symbols; i++) {
    if (symbols[i] < 255) continue;
    if (e->large == kMaxPatches) return false;
    s->large_symbols[e->large++] = static_cast<uint16_t>(s->residuals[i] >> shift);
    info->large++;
  }
  return true;
}

// Quantises one group at value `at` of the chunk and appends its symbols and low bits. False if
// the chunk has too much that does not fit the grid.
bool encode_group(const Kernels& kernels, const Grid& grid, const float* src, int at, Scratch* s,
                  Encoded* e) {
  const int g = at / kGroupValues;
  GroupInfo& info = e->groups[g];
  int16_t* codes = s->codes + Scratch::kFirstCode;
  bool exceptions = false;
  const int count = kernels.quantize(src, grid, s->mask + g * kGroupMask, codes, &exceptions);
  info = {0, static_cast<uint16_t>(count), 0};
  if (exceptions && !add_exceptions(grid, src, at, s, e)) return false;
  if (count == 0) {  // the header is not used: the one before makes the headers compress best
    s->headers[g] = g == 0 ? 0 : s->headers[g - 1];
    return true;
  }
  const GroupHeader header = choose_header(kernels.measure(codes, count), &info);
  s->headers[g] = header.byte();
  kernels.to_residuals(header.transform, codes, count, s->residuals);
  uint8_t* symbols = s->symbols + e->symbols;
  const bool saturated =
      kernels.split(s->residuals, count, header.shift, symbols, s->low + e->low_bytes);
  if (saturated && !add_large_symbols(symbols, header.shift, &info, s, e)) return false;
  e->symbols += static_cast<size_t>(count);
  e->low_bytes += static_cast<size_t>(count * header.shift + 7) / 8;
  codes[-1] = codes[count - 1];
  return true;
}

bool encode_groups(const Kernels& kernels, const Grid& grid, const float* src, int count,
                   Scratch* s, Encoded* e) {
  s->codes[Scratch::kFirstCode - 1] = 0;
  for (int at = 0; at < count; at += kGroupValues) {
    const int here = group_size(at, count);
    const float* values = src + at;
    if (here < kGroupValues) {
      std::memset(s->values, 0, sizeof(s->values));
      std::memcpy(s->values, values, sizeof(float) * static_cast<size_t>(here));
      values = s->values;
    }
    if (!encode_group(kernels, grid, values, at, s, e)) return false;
  }
  return true;
}

uint8_t* write_exceptions(const Scratch& s, size_t count, uint8_t* out) {
  out = store(out, static_cast<uint16_t>(count));
  std::memcpy(out, s.exception_at, count * 2);
  std::memcpy(out + count * 2, s.exception_bits, count * 4);
  return out + count * 6;
}

uint8_t* write_classes(const Kernels& kernels, const Classes& classes, Scratch* s, uint8_t* out) {
  for (int c = 0; c < kClasses; c++) {
    const size_t bytes = classes.mask[c + 1] - classes.mask[c];
    SectionPlan plan;
    plan_section(classes.counts[c].mask, bytes, &plan);
    out = write_section(kernels, plan, s->class_mask + classes.mask[c], bytes, out);
  }
  const uint16_t* large = s->class_large;
  for (int c = 0; c < kClasses; c++) {
    const size_t symbols = classes.symbols[c + 1] - classes.symbols[c];
    out = write_symbols(kernels, s->class_symbols + classes.symbols[c], symbols,
                        classes.counts[c].symbols, &large, s, out);
  }
  return out;
}

// --- decoder ---

struct Exceptions {
  const uint8_t* at;
  const uint8_t* bits;
  size_t count;
};

bool read_exceptions(Reader* reader, Exceptions* exceptions) {
  uint16_t count = 0;
  if (!reader->read(&count)) return false;
  exceptions->count = count;
  exceptions->at = reader->take(size_t{count} * 2);
  exceptions->bits = reader->take(size_t{count} * 4);
  return exceptions->at != nullptr && exceptions->bits != nullptr;
}

bool apply_exceptions(const Exceptions& exceptions, float* dst, int count) {
  for (size_t i = 0; i < exceptions.count; i++) {
    const int at = load<uint16_t>(exceptions.at + 2 * i);
    if (at >= count) return false;
    dst[at] = load<float>(exceptions.bits + 4 * i);
  }
  return true;
}

// The symbols of one class, read from front to back.
struct ClassReader {
  const uint8_t* symbols;
  size_t done;
  Patches patches;
  size_t patched;
};

struct Decoder {
  Reader reader;
  ClassReader classes[kClasses];
};

// Reads the masks by class and puts them back in the order of the groups.
bool read_masks(const Kernels& kernels, int count, Scratch* s, Decoder* d) {
  const int n = group_count(count);
  size_t begin[kClasses] = {}, bytes[kClasses] = {};
  for (int g = 0; g < n; g++) {
    bytes[class_of(s->headers[g])] += mask_bytes(group_size(g * kGroupValues, count));
  }
  for (int c = 0; c < kClasses; c++) {
    begin[c] = c == 0 ? 0 : begin[c - 1] + bytes[c - 1];
    if (!decode_section(kernels, &d->reader, s->class_mask + begin[c], bytes[c])) return false;
  }
  for (int g = 0; g < n; g++) {
    const size_t here = mask_bytes(group_size(g * kGroupValues, count));
    size_t& from = begin[class_of(s->headers[g])];
    std::memcpy(s->mask + g * kGroupMask, s->class_mask + from, here);
    from += here;
  }
  return finish_mask(count, s->mask);
}

bool read_classes(const Kernels& kernels, int count, Scratch* s, Decoder* d) {
  size_t symbols[kClasses] = {};
  for (int g = 0; g < group_count(count); g++) {
    symbols[class_of(s->headers[g])] += count_bits(s->mask + g * kGroupMask, kGroupMask);
  }
  uint8_t* at = s->class_symbols;
  for (int c = 0; c < kClasses; c++) {
    ClassReader& reader = d->classes[c];
    reader = {at, 0, {}, 0};
    if (!read_symbols(kernels, &d->reader, symbols[c], s, at, &reader.patches)) return false;
    at += symbols[c];
  }
  return true;
}

// Where one group's low bits are, readable for kPadding bytes past their end; null if they are not
// all there.
const uint8_t* take_low_bits(Reader* reader, size_t bytes, uint8_t* buffer) {
  const bool near_end = reader->left() < bytes + kPadding;
  const uint8_t* low = reader->take(bytes);
  if (low == nullptr || !near_end) return low;
  std::memcpy(buffer, low, bytes);
  return buffer;
}

void apply_patches(ClassReader* in, int count, int shift, uint16_t* residuals) {
  const size_t end = in->done + static_cast<size_t>(count);
  for (; in->patched < in->patches.count && in->patches.index(in->patched) < end; in->patched++) {
    uint16_t& residual = residuals[in->patches.index(in->patched) - in->done];
    const uint32_t low = residual & ((1u << shift) - 1);
    const uint32_t symbol = in->patches.symbol(in->patched);
    residual = static_cast<uint16_t>(symbol << shift | low);
  }
}

// Restores the `count` codes of a group.
bool decode_group(const Kernels& kernels, uint8_t header_byte, int count, Scratch* s, Decoder* d) {
  GroupHeader header;
  if (!parse_group_header(header_byte, &header)) return false;
  const size_t low_bytes = static_cast<size_t>(count * header.shift + 7) / 8;
  const uint8_t* low = take_low_bits(&d->reader, low_bytes, s->low);
  if (low == nullptr) return false;
  ClassReader& in = d->classes[header.group_class];
  kernels.join(in.symbols + in.done, low, count, header.shift, s->residuals);
  apply_patches(&in, count, header.shift, s->residuals);
  in.done += static_cast<size_t>(count);
  kernels.from_residuals(header.transform, s->residuals, count, s->codes + Scratch::kFirstCode);
  return true;
}

bool decode_groups(const Kernels& kernels, const Grid& grid, float* dst, int count, Scratch* s,
                   Decoder* d) {
  int16_t* codes = s->codes + Scratch::kFirstCode;
  codes[-1] = 0;
  for (int at = 0; at < count; at += kGroupValues) {
    const int g = at / kGroupValues, here = group_size(at, count);
    const uint8_t* mask = s->mask + g * kGroupMask;
    const int symbols = static_cast<int>(count_bits(mask, kGroupMask));
    if (symbols > 0 && !decode_group(kernels, s->headers[g], symbols, s, d)) return false;
    float* values = here == kGroupValues ? dst + at : s->values;
    kernels.dequantize(codes, mask, grid, values);
    if (here < kGroupValues) {
      std::memcpy(dst + at, values, sizeof(float) * static_cast<size_t>(here));
    }
    if (symbols > 0) codes[-1] = codes[symbols - 1];
  }
  return d->reader.left() == 0;
}

}  // namespace

size_t encode_quantized(const Kernels& kernels, const Grid& grid, const float* src, int count,
                        Scratch* scratch) {
  Encoded encoded;
  if (!encode_groups(kernels, grid, src, count, scratch, &encoded)) return 0;
  Classes classes;
  classify(kernels, encoded.groups, count, scratch, &classes);
  uint8_t* out = scratch->out;
  *out++ = kQuantizedChunk;
  out = encode_section(kernels, scratch->headers, static_cast<size_t>(group_count(count)), out);
  out = write_exceptions(*scratch, encoded.exceptions, out);
  out = write_classes(kernels, classes, scratch, out);
  std::memcpy(out, scratch->low, encoded.low_bytes);
  out += encoded.low_bytes;
  return static_cast<size_t>(out - scratch->out);
}

bool decode_quantized(const Kernels& kernels, const Grid& grid, const uint8_t* src, size_t size,
                      float* dst, int count, Scratch* scratch) {
  Decoder decoder;
  decoder.reader = {src, src + size};
  Exceptions exceptions = {};
  const auto groups = static_cast<size_t>(group_count(count));
  return decode_section(kernels, &decoder.reader, scratch->headers, groups) &&
         read_exceptions(&decoder.reader, &exceptions) &&
         read_masks(kernels, count, scratch, &decoder) &&
         read_classes(kernels, count, scratch, &decoder) &&
         decode_groups(kernels, grid, dst, count, scratch, &decoder) &&
         apply_exceptions(exceptions, dst, count);
}

}  // namespace sz
