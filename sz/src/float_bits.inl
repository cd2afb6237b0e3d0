// The bits of values. Included like lanes.inl; needs <cstring>.

// Bits of a value, and the parts they have.
template <typename T>
struct Float;
template <>
struct Float<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr float kSmallest = 0x1p-126f;
};
template <>
struct Float<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr double kSmallest = 0x1p-1022;
};

template <typename T>
typename Float<T>::Bits bits_of(T x) {
  typename Float<T>::Bits bits;
  std::memcpy(&bits, &x, sizeof(x));
  return bits;
}

template <typename T>
bool is_negative(T x) {
  return bits_of(x) >> (8 * sizeof(T) - 1) != 0;
}
