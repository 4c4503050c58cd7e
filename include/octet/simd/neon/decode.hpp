// Decoding in the NEON row: codes moved up beside the mantissa, and the first of them looked up.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_AARCH64
#include "../scalar.hpp"
#include "memory.hpp"
#include "walk.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace neon {

// A 16-bit type that a value is made as: T, or the upper half of a float.
template <class T>
using half_of = std::conditional_t<std::is_same_v<T, float>, bfloat16, T>;

// Where a value's bits in H are its code moved up, plus a constant: a multiple of the least exponent's bit.
template <class F, class H>
struct moved {
  static constexpr int up = float_traits<H>::mantissa_bits - F::mantissa_bits;
  static constexpr std::uint16_t rebias =
      static_cast<std::uint16_t>((float_traits<H>::bias - F::bias) * (1 << float_traits<H>::mantissa_bits));
  OCTET_HOST_INLINE static constexpr std::uint16_t bits(unsigned code) {
    return float_traits<H>::to_bits(octet::decode<H>(F::from_bits(static_cast<std::uint8_t>(code))));
  }
  OCTET_HOST_INLINE static constexpr bool gives(unsigned code) {
    return up > 0 && bits(code) == static_cast<std::uint16_t>((code << up) + rebias);
  }
  // The least code from which on to the largest it is so, tried one by one.
  OCTET_HOST_INLINE static constexpr unsigned first() {
    unsigned code = F::max_code + 1u;
    while (code > 0 && gives(code - 1)) --code;
    return code;
  }
};

// The codes below 16 can be looked up.
template <class F, class T>
OCTET_HOST_INLINE constexpr bool is_vector_target() {
  if constexpr (F::is_signed && is_vector_source<T>)
    return moved<F, half_of<T>>::first() <= 16;
  else
    return false;
}

// Lower and upper bytes of the first 16 codes' values.
template <class F, class H>
struct byte_tables {
  std::uint8_t lower[16], upper[16];
  OCTET_HOST_INLINE constexpr byte_tables() : lower(), upper() {
    for (unsigned code = 0; code < 16; ++code) {
      lower[code] = static_cast<std::uint8_t>(moved<F, H>::bits(code));
      upper[code] = static_cast<std::uint8_t>(moved<F, H>::bits(code) >> 8);
    }
  }
};
template <class F, class H>
static constexpr byte_tables<F, H> bytes_of{};

// Lower and upper bytes of 16 values.
struct bytes16 {
  uint8x16_t lower, upper;
};

// The values of 16 codes without their signs, NaN and infinity as if they were numbers. A lookup leaves the bytes whose
// code is no index as they are. A bit of the constant in the lower byte is the code's least exponent's, moved up.
template <class F, class H>
OCTET_ROW_INLINE bytes16 magnitudes16(uint8x16_t a) {
  constexpr int up = moved<F, H>::up;
  constexpr std::uint8_t low_rebias = moved<F, H>::rebias & 0xFF, high_rebias = moved<F, H>::rebias >> 8;
  bytes16 b;
  if constexpr (up >= 8) {
    static_assert(low_rebias == 0, "only the upper byte has bits");
    b = {vdupq_n_u8(0), vaddq_u8(up == 8 ? a : vshlq_n_u8(a, up % 8), vdupq_n_u8(high_rebias))};
  } else {
    static_assert(low_rebias % (1 << up) == 0, "the code has the bit too");
    if constexpr (low_rebias != 0) {
      const uint8x16_t c = vaddq_u8(a, vdupq_n_u8(low_rebias >> up));
      b = {vshlq_n_u8(c, up), vaddq_u8(vshrq_n_u8(c, 8 - up), vdupq_n_u8(high_rebias))};
    } else {
      b = {vshlq_n_u8(a, up), vaddq_u8(vshrq_n_u8(a, 8 - up), vdupq_n_u8(high_rebias))};
    }
  }
  if constexpr (moved<F, H>::first() != 0)
    b = {vqtbx1q_u8(b.lower, load(bytes_of<F, H>.lower), a), vqtbx1q_u8(b.upper, load(bytes_of<F, H>.upper), a)};
  return b;
}

// 16 codes taken apart: the magnitude, the sign in the highest bit, and all ones where a code is infinity or NaN.
template <class F>
struct parts16 {
  uint8x16_t a, sign, infinite, nan;
};
template <class F>
OCTET_ROW_INLINE parts16<F> take_apart(uint8x16_t codes) {
  const uint8x16_t a = vandq_u8(codes, vdupq_n_u8(F::magnitude_mask)), none = vdupq_n_u8(0);
  const uint8x16_t sign = F::width < 8 ? vshlq_n_u8(codes, (8 - F::width) % 8) : codes;
  const uint8x16_t infinite = F::has_infinity ? vceqq_u8(a, vdupq_n_u8(F::infinity_code)) : none;
  if constexpr (!F::has_nan)
    return {a, sign, infinite, none};
  else if constexpr (F::has_negative_zero)
    return {a, sign, infinite, vcgtq_u8(a, vdupq_n_u8(F::infinity_code))};
  else
    return {a, sign, infinite, vceqq_u8(sign, vdupq_n_u8(0x80))};
}

template <class F, class H>
OCTET_ROW_INLINE bytes16 values16(const parts16<F>& p) {
  using S = float_traits<H>;
  bytes16 b = magnitudes16<F, H>(p.a);
  if constexpr (F::has_infinity && !moved<F, H>::gives(F::infinity_code))
    b = {vbslq_u8(p.infinite, vdupq_n_u8(S::infinity & 0xFF), b.lower),
         vbslq_u8(p.infinite, vdupq_n_u8(S::infinity >> 8), b.upper)};
  b.upper = vbslq_u8(vdupq_n_u8(0x80), p.sign, b.upper);
  if constexpr (F::has_nan)  // 7FFF
    b = {vorrq_u8(b.lower, p.nan), vbslq_u8(p.nan, vdupq_n_u8(0x7F), b.upper)};
  return b;
}

// The lower half of a float is zero, but for NaN, 7FFFFFFF.
template <class F>
OCTET_ROW_INLINE words16 floats16(const F* in) {
  const parts16<F> p = take_apart<F>(load(in));
  const bytes16 b = values16<F, bfloat16>(p);
  return interleave(interleave(p.nan, p.nan), interleave(b.lower, b.upper));
}

template <class F, class T>
struct decoding {
  const F* in;
  T* out;

  OCTET_ROW_INLINE void block(std::size_t i) const {
    if constexpr (std::is_same_v<T, float>) {
      store16(out + i, floats16(in + i));
    } else {
      const bytes16 b = values16<F, T>(take_apart<F>(load(in + i)));
      store16(out + i, interleave(b.lower, b.upper));
    }
  }
};

template <class F, class T>
OCTET_ROW void decode(const F* in, T* out, std::size_t n, bool streams) {
  if constexpr (!is_vector_target<F, T>()) {
    scalar::decode(in, out, n, streams);
  } else {
    if (n != 0) walk(decoding<F, T>{in, out}, n);
  }
}

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
