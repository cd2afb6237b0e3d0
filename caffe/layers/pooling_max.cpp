#include <algorithm>
#include <cstring>
#include <limits>

#include "caffe/core/simd.hpp"
#include "caffe/layers/pooling_kernels.hpp"

namespace caffe {
namespace {

// Whether `v` replaces `best`: larger, or the first NaN. Bit operators: no branch, so it
// vectorises.
inline bool wins(float v, float best) {
  return (v > best) | ((v != v) & (best == best));
}

template <int kLanes>
struct Vector;
template <>
struct Vector<4> {
  typedef float Float __attribute__((vector_size(16)));
  typedef int32_t Int __attribute__((vector_size(16)));
};
template <>
struct Vector<8> {
  typedef float Float __attribute__((vector_size(32)));
  typedef int32_t Int __attribute__((vector_size(32)));
};

// Neighbouring outputs done together, in the compiler's vector types.
template <int kLanes>
struct Lanes {
  using Float = typename Vector<kLanes>::Float;
  using Int = typename Vector<kLanes>::Int;

  // columns[j] = pixel j of each lane's window, one row of it.
  template <int kKernel, int kStride>
  [[gnu::always_inline]] static void load(const float* x, Float (&columns)[kKernel]) {
    if constexpr (kStride == 1) {
      for (int j = 0; j < kKernel; ++j) std::memcpy(&columns[j], x + j, sizeof(Float));
    } else {
      static_assert(kStride == 2 && kKernel <= 3);
      Float low, high;
      std::memcpy(&low, x, sizeof(Float));
      std::memcpy(&high, x + kLanes, sizeof(Float));
      Int even, next;
      for (int i = 0; i < kLanes; ++i) even[i] = 2 * i;
      for (int i = 0; i < kLanes; ++i) next[i] = i + 1;
      columns[0] = __builtin_shuffle(low, high, even);
      columns[1] = __builtin_shuffle(low, high, even + 1);
      // The third pixel is the next window's first; the last lane's is all there is to load.
      if constexpr (kKernel == 3) {
        columns[2] = __builtin_shuffle(columns[0], Float{} + x[2 * kLanes], next);
      }
    }
  }

  // Returns whether a NaN was met: then the results are not to be used.
  template <int kKernel, int kStride>
  [[gnu::always_inline]] static bool max(const float* x, int64_t width, float* y, int32_t* codes) {
    Float best;
    Int code = {};
    Int nan = {};
    for (int i = 0; i < kKernel; ++i) {
      Float columns[kKernel];
      load<kKernel, kStride>(x + i * width, columns);
      if (i == 0) best = columns[0];
      for (int j = 0; j < kKernel; ++j) {
        const Int larger = columns[j] > best;
        best = larger ? columns[j] : best;
        code = larger ? Int{} + (i * kKernel + j) : code;
        nan |= columns[j] != columns[j];
      }
    }
    std::memcpy(y, &best, sizeof(best));
    std::memcpy(codes, &code, sizeof(code));
    int32_t any = 0;
    for (int i = 0; i < kLanes; ++i) any |= nan[i];
    return any != 0;
  }

  // `count` >= kLanes windows. The last ones may be done twice: faster than one by one.
  template <int kKernel, int kStride>
  [[gnu::always_inline]] static bool row(const float* x, int64_t width, int64_t count, float* y,
                                         int32_t* codes) {
    bool nan = false;
    for (int64_t next = 0; next < count; next += kLanes) {
      const int64_t o = std::min(next, count - kLanes);
      nan |= max<kKernel, kStride>(x + o * kStride, width, y + o, codes + o);
    }
    return nan;
  }
};

// Windows side by side that lie wholly in the plane. Returns false if the results are not to be
// used: too few of them, or a NaN among them.
template <int kKernel, int kStride>
[[gnu::always_inline]] inline bool max_row(const float* x, int64_t width, int64_t count, float* y,
                                           int32_t* codes) {
  if (count >= 8) return !Lanes<8>::row<kKernel, kStride>(x, width, count, y, codes);
  if (count >= 4) return !Lanes<4>::row<kKernel, kStride>(x, width, count, y, codes);
  return false;
}

using MaxRow = bool (*)(const float*, int64_t, int64_t, float*, int32_t*);

CAFFE_WIDE bool max_row_k2s2(const float* x, int64_t width, int64_t count, float* y,
                             int32_t* codes) {
  return max_row<2, 2>(x, width, count, y, codes);
}
CAFFE_WIDE bool max_row_k3s1(const float* x, int64_t width, int64_t count, float* y,
                             int32_t* codes) {
  return max_row<3, 1>(x, width, count, y, codes);
}
CAFFE_WIDE bool max_row_k3s2(const float* x, int64_t width, int64_t count, float* y,
                             int32_t* codes) {
  return max_row<3, 2>(x, width, count, y, codes);
}

// The fast kernel for rows of windows that lie wholly in the plane, or null.
MaxRow max_row_for(const PoolPlane& p) {
  if (p.kernel_h != p.kernel_w) return nullptr;
  if (p.kernel_w == 2 && p.stride_w == 2) return max_row_k2s2;
  if (p.kernel_w == 3 && p.stride_w == 1) return max_row_k3s1;
  if (p.kernel_w == 3 && p.stride_w == 2) return max_row_k3s2;
  return nullptr;
}

// Any window, clipped to the plane.
void max_window(const PoolPlane& p, const float* x, int64_t top, int64_t left, float* y,
                int32_t* code) {
  const int64_t first_i = std::max<int64_t>(0, -top);
  const int64_t first_j = std::max<int64_t>(0, -left);
  const int64_t end_i = std::min(p.kernel_h, p.height - top);
  const int64_t end_j = std::min(p.kernel_w, p.width - left);
  float best = -std::numeric_limits<float>::infinity();
  int64_t found = first_i * p.kernel_w + first_j;
  for (int64_t i = first_i; i < end_i; ++i) {
    for (int64_t j = first_j; j < end_j; ++j) {
      const float v = x[(top + i) * p.width + left + j];
      if (!wins(v, best)) continue;
      best = v;
      found = i * p.kernel_w + j;
    }
  }
  *y = best;
  *code = static_cast<int32_t>(found);
}

}  // namespace

void max_pool(const PoolPlane& p, const float* x, float* y, int32_t* codes) {
  const MaxRow fast = max_row_for(p);
  const WindowRange first = windows_inside(p.out_width, p.stride_w, p.pad_w, 0, p.width);
  const WindowRange last =
      windows_inside(p.out_width, p.stride_w, p.pad_w, p.kernel_w - 1, p.width);
  const int64_t whole_begin = std::max(first.begin, last.begin);
  const int64_t whole_end = std::max(whole_begin, std::min(first.end, last.end));
  for (int64_t oh = 0; oh < p.out_height; ++oh) {
    const int64_t top = oh * p.stride_h - p.pad_h;
    int64_t begin = 0;  // windows in [begin, end) are done by the fast kernel
    int64_t end = 0;
    if (fast != nullptr && top >= 0 && top + p.kernel_h <= p.height) {
      begin = whole_begin;
      end = whole_end;
      if (!fast(x + top * p.width + begin * p.stride_w - p.pad_w, p.width, end - begin, y + begin,
                codes + begin)) {
        end = begin;
      }
    }
    for (int64_t ow = 0; ow < p.out_width; ++ow) {
      if (ow == begin) ow = end;
      if (ow >= p.out_width) break;
      max_window(p, x, top, ow * p.stride_w - p.pad_w, y + ow, codes + ow);
    }
    y += p.out_width;
    codes += p.out_width;
  }
}

void max_pool_backward(const PoolPlane& p, const float* dy, const int32_t* codes,
                       const int32_t* offsets, float* dx) {
  std::fill_n(dx, p.size(), 0.0f);
  for (int64_t oh = 0; oh < p.out_height; ++oh) {
    const int64_t corner = (oh * p.stride_h - p.pad_h) * p.width - p.pad_w;
    for (int64_t ow = 0; ow < p.out_width; ++ow) {
      dx[corner + ow * p.stride_w + offsets[codes[ow]]] += dy[ow];
    }
    dy += p.out_width;
    codes += p.out_width;
  }
}

void max_pool_gather(const PoolPlane& p, const float* x, const int32_t* codes,
                     const int32_t* offsets, float* y) {
  for (int64_t oh = 0; oh < p.out_height; ++oh) {
    const int64_t corner = (oh * p.stride_h - p.pad_h) * p.width - p.pad_w;
    for (int64_t ow = 0; ow < p.out_width; ++ow) {
      y[ow] = x[corner + ow * p.stride_w + offsets[codes[ow]]];
    }
    y += p.out_width;
    codes += p.out_width;
  }
}

}  // namespace caffe
