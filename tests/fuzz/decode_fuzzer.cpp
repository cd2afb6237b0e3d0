// libFuzzer: any bytes as a stream, with both instruction sets.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static sz::Context context;
  for (const sz::Isa isa : {sz::Isa::Scalar, sz::Isa::Auto}) {
    fuzz::decode_anything(context, data, size, isa);
  }
  return 0;
}
