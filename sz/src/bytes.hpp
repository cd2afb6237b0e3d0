// Little-endian loads and stores, and a reader that cannot leave its range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "sz is written for little-endian machines"
#endif

namespace sz {

template <typename T>
inline T load(const uint8_t* src) {
  T value;
  std::memcpy(&value, src, sizeof(T));
  return value;
}

// Stores and returns the position after it.
template <typename T>
inline uint8_t* store(uint8_t* dst, T value) {
  std::memcpy(dst, &value, sizeof(T));
  return dst + sizeof(T);
}

// A range of input still to be read. Every read says whether the bytes were there.
struct Reader {
  const uint8_t* next;
  const uint8_t* end;

  size_t left() const { return static_cast<size_t>(end - next); }

  template <typename T>
  bool read(T* value) {
    if (left() < sizeof(T)) return false;
    *value = load<T>(next);
    next += sizeof(T);
    return true;
  }

  // Gives the address of `count` bytes and steps over them; null if they are not there.
  const uint8_t* take(size_t count) {
    if (left() < count) return nullptr;
    const uint8_t* at = next;
    next += count;
    return at;
  }
};

}  // namespace sz
