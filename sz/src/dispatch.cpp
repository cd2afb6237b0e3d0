#include "dispatch.hpp"

namespace sz {
namespace {

bool has_avx2() {
#ifdef SZ_HAS_AVX2
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                          __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  return has;
#else
  return false;
#endif
}

}  // namespace

bool supported(Isa isa) {
  return isa != Isa::Avx2 || has_avx2();
}

const Kernels& kernels_for(Isa isa) {
  if (!supported(isa)) {
    throw ArgumentError("sz: isa: this processor or build has no AVX2 with BMI2; use Isa::Auto");
  }
#ifdef SZ_HAS_AVX2
  static const Kernels avx2 = {kAvx2Float32, kAvx2Float64, kAvx2Coder};
  if (isa == Isa::Avx2 || (isa == Isa::Auto && has_avx2())) return avx2;
#endif
  return kScalarKernels;
}

}  // namespace sz
