// Largest magnitudes in the NEON row.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_AARCH64
#include "../scalar.hpp"
#include "memory.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace neon {

// The larger ones of 4 or 8 magnitudes, and of those of a vector of values.
template <class T>
OCTET_ROW_INLINE uint8x16_t larger(uint8x16_t a, uint8x16_t b) {
  if constexpr (sizeof(T) == 4)
    return vreinterpretq_u8_u32(vmaxq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
  else
    return vreinterpretq_u8_u16(vmaxq_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}
template <class T>
OCTET_ROW_INLINE uint8x16_t larger(uint8x16_t largest, const T* in) {
  const uint8x16_t mask =
      sizeof(T) == 4 ? vreinterpretq_u8_u32(vdupq_n_u32(0x7FFFFFFF)) : vreinterpretq_u8_u16(vdupq_n_u16(0x7FFF));
  return larger<T>(largest, vandq_u8(load(in), mask));
}

template <class T>
OCTET_ROW exact::bits_of<T> amax(const T* in, std::size_t n, bool streams) {
  constexpr std::size_t lanes = 16 / sizeof(T);
  if constexpr (!is_vector_source<T>) {
    return scalar::amax(in, n, streams);
  } else {
    if (n < lanes) return scalar::amax(in, n, streams);
    uint8x16_t a = vdupq_n_u8(0), b = a, c = a, d = a;
    std::size_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      a = larger(a, in + i);
      b = larger(b, in + i + lanes);
      c = larger(c, in + i + 2 * lanes);
      d = larger(d, in + i + 3 * lanes);
    }
    for (; i + lanes <= n; i += lanes) a = larger(a, in + i);
    b = larger(b, in + n - lanes);
    const uint8x16_t each = larger<T>(larger<T>(a, b), larger<T>(c, d));
    if constexpr (sizeof(T) == 4)
      return vmaxvq_u32(vreinterpretq_u32_u8(each));
    else
      return vmaxvq_u16(vreinterpretq_u16_u8(each));
  }
}

template <class T>
OCTET_ROW void amax_each(const T* in, exact::bits_of<T>* largest, std::size_t n) {
  std::size_t i = 0;
  if constexpr (is_vector_source<T>) {
    constexpr std::size_t lanes = 16 / sizeof(T);
    for (; i + lanes <= n; i += lanes) store(largest + i, larger(load(largest + i), in + i));
  }
  scalar::amax_each(in + i, largest + i, n - i);
}

template <class T>
OCTET_ROW void amax_runs(const T* in, std::size_t width, std::size_t count, exact::bits_of<T>* amax, bool streams) {
  for (std::size_t i = 0; i < count; ++i) amax[i] = neon::amax(in + i * width, width, streams);
}

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
