// The reference arithmetic of one value, which every kernel does in the values' own precision in the
// same order, without contraction into FMA. Included like model.inl; needs <cmath> and <cstring>.

#include "float_bits.inl"

// The dither of the value with this index: uniform in [-1/2, 1/2), a multiple of 2^-24. The hash
// is the finaliser of MurmurHash3 (Appleby, public domain).
float dither_of(uint64_t index, uint32_t seed) {
  uint32_t h =
      static_cast<uint32_t>(index) ^ static_cast<uint32_t>(index >> 32) * 0x9e3779b9u ^ seed;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  h ^= h >> 16;
  return static_cast<float>(static_cast<int32_t>(h >> 8) - (1 << 23)) * 0x1p-24f;
}

// Whether values of this sign are dithered: negative ones with a scale of their own are not.
template <typename T>
bool is_dithered(const Grid<T>& grid, bool below) {
  return grid.dither && !(below && grid.signs == Signs::Scaled);
}

// Code 1 (or -1) of a dithered grid that keeps signs is what would cross zero: it gives the smallest
// value of its sign.
template <typename T>
T dequantize_value(int code, T dither, const Grid<T>& grid) {
  if (code == 0) return 0;
  const T q = static_cast<T>(code);
  if (grid.signs == Signs::Lost) {
    if (!grid.dither) return q * grid.positive.step;
    return ((code > 0 ? q - 1 : q) + dither) * grid.positive.step;
  }
  const T step = code > 0 ? grid.positive.step : grid.negative.step;
  const T magnitude = code > 0 ? q : -q;
  T y = (magnitude - static_cast<T>(0.5)) * step;
  if (is_dithered(grid, code < 0)) {
    y = (magnitude - static_cast<T>(1.5) + dither) * step;
    if (code == 1 || code == -1 || !(y > Float<T>::kSmallest)) y = Float<T>::kSmallest;
  }
  return code > 0 ? y : -y;
}

// Gives the code of x; false (and code 0) if x is out of range, not finite, or would decode to
// more than the threshold away.
template <typename T>
bool quantize_value(T x, T dither, const Grid<T>& grid, int* code) {
  *code = 0;
  if (x == 0) return true;
  const bool below = grid.signs == Signs::Scaled && is_negative(x);
  const Scale<T>& scale = below ? grid.negative : grid.positive;
  const T scaled = x * scale.inverse;
  if (!(std::fabs(scaled) <= kCodeLimit)) return false;
  int q = 0;
  if (grid.signs == Signs::Lost) {
    q = static_cast<int>(std::rint(scaled - dither));
    if (grid.dither) q += q >= 0;
  } else if (!is_dithered(grid, below)) {
    const T magnitude = std::fabs(scaled);
    q = static_cast<int>(std::ceil(magnitude));
    q = q > 1 ? q : 1;
  } else {
    q = static_cast<int>(std::rint(std::fabs(scaled) + static_cast<T>(0.5) - dither));
    q = (q > 0 ? q : 0) + 1;
  }
  if (grid.signs != Signs::Lost && is_negative(x)) q = -q;
  if (!(std::fabs(x - dequantize_value(q, dither, grid)) <= scale.threshold)) return false;
  *code = q;
  return true;
}
