#include "dispatch.hpp"

#include <string>

namespace sz {
namespace {

bool always() {
  return true;
}

// __builtin_cpu_supports() asks for the operating system's support too.
#ifdef SZ_HAS_WIDE_KERNELS
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const Kernels kAvx2Kernels = {kAvx2Float32, kAvx2Float64, kAvx2Coder, kAvx2Pairs};
const Kernels kAvx512Kernels = {kAvx512Float32, kAvx512Float64, kAvx512Coder, kAvx512Pairs};
#endif

struct Set {
  Isa isa;
  bool (*available)();
  const Kernels* kernels;
};

// The best first.
constexpr Set kSets[] = {
#ifdef SZ_HAS_WIDE_KERNELS
    {Isa::Avx512, has_avx512, &kAvx512Kernels},
    {Isa::Avx2, has_avx2, &kAvx2Kernels},
#endif
    {Isa::Scalar, always, &kScalarKernels},
};

// Of what is available, the best or the one that is asked for; null if it is not.
const Kernels* find(Isa isa) {
  for (const Set& set : kSets) {
    if ((isa == Isa::Auto || isa == set.isa) && set.available()) return set.kernels;
  }
  return nullptr;
}

const char* needs_of(Isa isa) {
  return isa == Isa::Avx512 ? "AVX-512 (F, BW, DQ and VL)" : "AVX2 with BMI2";
}

}  // namespace

bool supported(Isa isa) {
  return find(isa) != nullptr;
}

const Kernels& kernels_for(Isa isa) {
  const Kernels* kernels = find(isa);
  if (kernels == nullptr) {
    throw ArgumentError(std::string("sz: isa: this processor or build has no ") + needs_of(isa) +
                        "; use Isa::Auto");
  }
  return *kernels;
}

}  // namespace sz
