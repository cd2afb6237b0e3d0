#include "symbols.hpp"

#include <cstring>

#include "byte_coder.hpp"

namespace sz {
namespace {

int symbol_limit(int bits) {
  return bits == 8 ? 255 : 1 << bits;
}

size_t symbols_over(const uint32_t* counts, int bits) {
  size_t over = 0;
  for (int symbol = symbol_limit(bits); symbol < 256; symbol++) over += counts[symbol];
  return over;
}

struct Packing {
  int bits;
  size_t patches;
  const uint8_t* bytes;
  size_t size;
  SectionPlan plan;

  size_t cost() const { return plan.size + 4 * patches; }
};

void plan_packing(const Kernels& kernels, const uint32_t* counts, const uint8_t* symbols,
                  size_t count, int bits, uint8_t* buffer, Packing* packing) {
  packing->bits = bits;
  packing->patches = symbols_over(counts, bits);
  packing->size = (count * static_cast<size_t>(bits) + 7) / 8;
  if (bits == 8) {
    packing->bytes = symbols;
    plan_section(counts, packing->size, &packing->plan);
    return;
  }
  kernels.pack(symbols, count, bits, buffer);
  packing->bytes = buffer;
  uint32_t packed_counts[256];
  kernels.histogram(buffer, packing->size, packed_counts);
  plan_section(packed_counts, packing->size, &packing->plan);
}

// Lists the symbols that do not fit, in order. Returns the end of the large ones used.
const uint16_t* collect_patches(const Packing& packing, uint8_t* symbols, size_t count,
                                const uint16_t* large, Scratch* s) {
  const int limit = symbol_limit(packing.bits);
  const uint64_t suspicious = 0x0101010101010101ull * (packing.bits == 8 ? 0x80 : 256 - limit);
  const auto after = load<uint64_t>(symbols + count);
  store(symbols + count, uint64_t{0});
  size_t patches = 0;
  for (size_t i = 0; i < count; i += 8) {
    if ((load<uint64_t>(symbols + i) & suspicious) == 0) continue;
    for (size_t j = i; j < i + 8; j++) {
      if (symbols[j] < limit) continue;
      s->patch_at[patches] = static_cast<uint16_t>(j);
      s->patch_value[patches++] = symbols[j] == 255 ? *large++ : symbols[j];
    }
  }
  store(symbols + count, after);
  return large;
}

bool read_patches(Reader* reader, size_t symbols, Patches* patches) {
  uint16_t count = 0;
  if (!reader->read(&count)) return false;
  patches->count = count;
  patches->at = reader->take(size_t{count} * 2);
  patches->value = reader->take(size_t{count} * 2);
  if (patches->at == nullptr || patches->value == nullptr) return false;
  for (size_t i = 0; i < count; i++) {
    if (patches->index(i) >= symbols) return false;
    if (i > 0 && patches->index(i) <= patches->index(i - 1)) return false;
  }
  return true;
}

}  // namespace

// Small alphabets are packed several to a byte, so that the code can spend less than a bit on
// one. The narrowest packing with few patches is tried, and the next.
uint8_t* write_symbols(const Kernels& kernels, uint8_t* symbols, size_t count,
                       const uint32_t* counts, const uint16_t** large, Scratch* scratch,
                       uint8_t* dst) {
  if (count == 0) return dst;
  int bits = 1;
  while (bits < 8 && symbols_over(counts, bits) * 1024 > count) bits *= 2;
  Packing first, second;
  plan_packing(kernels, counts, symbols, count, bits, scratch->packed[0], &first);
  const Packing* chosen = &first;
  if (bits < 8) {
    plan_packing(kernels, counts, symbols, count, bits * 2, scratch->packed[1], &second);
    if (second.cost() < first.cost()) chosen = &second;
  }
  *dst++ = static_cast<uint8_t>(chosen->bits);
  dst = store(dst, static_cast<uint16_t>(chosen->patches));
  if (chosen->patches > 0) *large = collect_patches(*chosen, symbols, count, *large, scratch);
  std::memcpy(dst, scratch->patch_at, chosen->patches * 2);
  std::memcpy(dst + chosen->patches * 2, scratch->patch_value, chosen->patches * 2);
  dst += chosen->patches * 4;
  return write_section(kernels, chosen->plan, chosen->bytes, chosen->size, dst);
}

bool read_symbols(const Kernels& kernels, Reader* reader, size_t count, Scratch* scratch,
                  uint8_t* symbols, Patches* patches) {
  *patches = {};
  if (count == 0) return true;
  uint8_t bits = 0;
  if (!reader->read(&bits) || !read_patches(reader, count, patches)) return false;
  if (bits == 8) return decode_section(kernels, reader, symbols, count);
  if (bits != 1 && bits != 2 && bits != 4) return false;
  const size_t size = (count * bits + 7) / 8;
  if (!decode_section(kernels, reader, scratch->packed[0], size)) return false;
  kernels.unpack(scratch->packed[0], count, bits, symbols);
  return true;
}

}  // namespace sz
