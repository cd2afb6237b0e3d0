// The reference: every kernel in portable C++.
#include <cmath>
#include <cstring>

#include "kernels.hpp"

namespace sz {
namespace {

#include "model.inl"
#include "values.inl"
#include "portable_kernels.inl"

}  // namespace

const Kernels kScalarKernels = {
    {quantize<float>, dequantize<float>, accumulate<float>},
    {quantize<double>, dequantize<double>, accumulate<double>},
    count,
    encode,
    decode,
};

}  // namespace sz
