// The kernels of values in portable C++, which also serve those that are not hot. Included like
// model.inl; needs <cmath> and <cstring>.

#include "values.inl"

template <typename T>
bool quantize(const Block<const T>& block, const Grid<T>& grid, int16_t* codes) {
  const LanesOf<const T> lanes(block, grid.seed);
  bool clean = true;
  for (int lane = 0; lane < kLanes; lane++) {
    const T* src = lanes.values(lane);
    for (int t = 0; t < kBlockSteps; t++) {
      const T dither = grid.dither ? static_cast<T>(dither_of(lanes.key(lane), t)) : T(0);
      int code;
      clean = quantize_value(src[t], dither, grid, &code) && clean;
      codes[t * kLanes + lane] = static_cast<int16_t>(code);
    }
  }
  return clean;
}

template <typename T>
void dequantize(const int16_t* codes, const Grid<T>& grid, const Block<T>& block) {
  const LanesOf<T> lanes(block, grid.seed);
  for (int lane = 0; lane < kLanes; lane++) {
    T* dst = lanes.values(lane);
    for (int t = 0; t < kBlockSteps; t++) {
      const T dither = grid.dither ? static_cast<T>(dither_of(lanes.key(lane), t)) : T(0);
      dst[t] = dequantize_value(codes[t * kLanes + lane], dither, grid);
    }
  }
}

template <typename T>
void accumulate_one(T x, size_t lane, LaneSums<T>* sums) {
  sums->nonzeros += x != 0;  // NaN too
  if (!(x - x == 0)) return;
  sums->sum[lane] += static_cast<double>(x);
  sums->squares[lane] += static_cast<double>(x) * static_cast<double>(x);
  sums->min[lane] = x < sums->min[lane] ? x : sums->min[lane];
  sums->max[lane] = x > sums->max[lane] ? x : sums->max[lane];
}

template <typename T>
void accumulate(const T* src, size_t count, LaneSums<T>* sums) {
  for (size_t i = 0; i < count; i++) accumulate_one(src[i], i % 8, sums);
}
