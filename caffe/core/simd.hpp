// CAFFE_WIDE in front of a function compiles it for every x86-64 and again for AVX2; the dynamic
// loader picks. For inner loops that the compiler vectorises. Element-wise loops give the same bits
// either way (no FMA); sums may differ in rounding.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CAFFE_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define CAFFE_WIDE
#endif
