// The reference arithmetic of one value, which every kernel does in the values' own precision in the
// same order, without contraction into FMA. Included like lanes.inl; needs <cmath> and
// <cstring>.

#include "float_bits.inl"

// The dither of value t of a lane: uniform in (0, 1), an odd multiple of 2^-17. Values 2n and 2n + 1
// share a hash, that of their pair: a Weyl sequence through Wellons' lowbias32 (public domain).
constexpr uint32_t kPairStep = 0x9e3779b1u;

inline float dither_of(uint32_t key, int t) {
  uint32_t h = key + static_cast<uint32_t>(t / 2) * kPairStep;
  h = (h ^ h >> 16) * 0x7feb352du;
  h = (h ^ h >> 15) * 0x846ca68bu;
  h ^= h >> 16;
  const uint32_t half = t % 2 == 0 ? h & 0xffff : h >> 16;
  return (static_cast<float>(half) + 0.5f) * 0x1p-16f;
}

// Where the lanes of a block, and the keys of their dithers, begin. Copies: after a store to the
// values the compiler would load the block's own fields again.
template <typename T>
class LanesOf {
 public:
  LanesOf(const Block<T>& block, uint32_t seed)
      : values_(block.values),
        stride_(block.stride),
        key_(block.pair * kPairStep + seed),
        key_step_(block.pair_stride * kPairStep) {}

  T* values(int lane) const { return values_ + lane * stride_; }
  uint32_t key(int lane) const { return key_ + static_cast<uint32_t>(lane) * key_step_; }

 private:
  T* values_;
  int64_t stride_;
  uint32_t key_, key_step_;
};

// Whether values of this sign are dithered: negative ones with a scale of their own are not.
template <typename T>
bool is_dithered(const Grid<T>& grid, bool below) {
  return grid.dither && !(below && grid.signs == Signs::Scaled);
}

// What a code means with dither 0, and what dither 1 adds. Where signs are kept and dithered, code 1
// (or -1) is what would cross zero: it gives the smallest value of its sign.
template <typename T>
T base_of(int code, const Grid<T>& grid) {
  if (code == 0) return 0;
  const T q = static_cast<T>(code), half = static_cast<T>(0.5);
  if (grid.signs == Signs::Lost) {
    if (!grid.dither) return q * grid.positive.step;
    return (code > 0 ? q - half : q + half) * grid.positive.step;
  }
  const T step = code > 0 ? grid.positive.step : grid.negative.step;
  const T magnitude = code > 0 ? q : -q;
  T base = (magnitude - half) * step;
  if (is_dithered(grid, code < 0)) {
    base = magnitude == 1 ? Float<T>::kSmallest : (magnitude - 1) * step;
  }
  return code > 0 ? base : -base;
}

template <typename T>
T slope_of(int code, const Grid<T>& grid) {
  if (code == 0 || !is_dithered(grid, code < 0)) return 0;
  const T step = grid.positive.step;
  if (grid.signs == Signs::Lost) return -step;
  if (code == 1 || code == -1) return 0;
  return code > 0 ? -step : step;
}

template <typename T>
T dequantize_value(int code, T dither, const Grid<T>& grid) {
  return base_of(code, grid) + dither * slope_of(code, grid);
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
  int q;
  if (grid.signs == Signs::Lost) {
    q = static_cast<int>(grid.dither ? std::floor(scaled + dither) : std::rint(scaled));
    if (grid.dither) q += q >= 0;
  } else {
    const T up = is_dithered(grid, below) ? dither + static_cast<T>(1.5) : 1;
    q = static_cast<int>(std::fabs(scaled) + up);
    if (is_negative(x)) q = -q;
  }
  if (!(std::fabs(x - dequantize_value(q, dither, grid)) <= scale.threshold)) return false;
  *code = q;
  return true;
}
