#include "coder.hpp"

#include <cstring>

#include "bytes.hpp"

namespace sz {
namespace {

// What is left in the writer becomes the first bytes; the bits to skip there.
int finish_raw(RawWriter* raw) {
  const int bytes = (raw->fill + 7) / 8;
  const int skip = 8 * bytes - raw->fill;
  const uint64_t rest = (raw->bits & ((uint64_t{1} << raw->fill) - 1)) << skip;
  raw->at -= bytes;
  std::memcpy(raw->at, &rest, static_cast<size_t>(bytes));
  return skip;
}

}  // namespace

uint8_t* write_codes(const Kernels& kernels, const Model& model, int values, Scratch* s,
                     uint8_t* out) {
  uint16_t* const words_end = s->words + kMaxChunk + kPadding / 2;
  uint8_t* const raw_end = s->raw + sizeof(s->raw) - kPadding / 2;
  RawWriter raw = {raw_end, 0, 0};
  uint32_t states[kLanes];
  for (uint32_t& state : states) state = kLeastState;
  const Lattice lattice = model.layout.lattice_of(values);
  const Lanes lanes = model.layout.lanes_of(values);
  const uint16_t* words =
      model.pairs
          ? kernels.pairs.encode(s->codes, model.layout.pairs_of(lattice), lanes, model.encoder,
                                 model.classes, &s->pairs, states, words_end, &raw)
          : kernels.coder.encode(s->codes, lattice, lanes, model.encoder, states, words_end, &raw);
  const auto count = static_cast<uint32_t>(words_end - words);
  *out++ = static_cast<uint8_t>(finish_raw(&raw));
  out = store(out, count);
  std::memcpy(out, states, sizeof(states));
  out += sizeof(states);
  std::memcpy(out, words, 2 * size_t{count});
  out += 2 * size_t{count};
  std::memcpy(out, raw.at, static_cast<size_t>(raw_end - raw.at));
  return out + (raw_end - raw.at);
}

bool open_codes(const uint8_t* src, const uint8_t* end, Decoding* chunk) {
  if (static_cast<size_t>(end - src) < kCoderHeader) return false;
  const uint8_t skip = src[0];
  const size_t count = load<uint32_t>(src + 1);
  std::memcpy(chunk->states, src + 5, sizeof(chunk->states));
  src += kCoderHeader;
  if (skip > 7 || count > static_cast<size_t>(end - src) / 2) return false;
  chunk->words = src;
  chunk->words_end = src + 2 * count;
  chunk->raw = {chunk->words_end, skip, 8 * static_cast<uint64_t>(end - chunk->words_end)};
  return chunk->raw.position <= chunk->raw.end;
}

bool read_codes(const Kernels& kernels, const Model& model, int values, Scratch* s,
                Decoding* chunk) {
  const Lattice lattice = model.layout.lattice_of(values);
  const Lanes lanes = model.layout.lanes_of(values);
  if (!model.pairs) return kernels.coder.decode(chunk, lattice, lanes, model.decoder);
  return kernels.pairs.decode(chunk, model.layout.pairs_of(lattice), lanes, model.decoder,
                              model.classes, &s->pairs);
}

}  // namespace sz
