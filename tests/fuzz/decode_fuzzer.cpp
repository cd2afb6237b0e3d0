// libFuzzer: any bytes as a stream, with all instruction sets.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static sz::Context context;
  fuzz::decode_anything(context, data, size);
  return 0;
}
