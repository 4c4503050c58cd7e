// Dequantizing in the NEON row: products of decoded values and descales, rounded once.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_AARCH64
#include "../scalar.hpp"
#include "decode.hpp"
#include "memory.hpp"
#include "scale.hpp"
#include "walk.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace neon {

// The products of 4 magnitudes c and descales d, rounded once to H, in the lower halves of words; bfloat16's are 128
// too large, where they are not zero. As in rounded4, with m from the float nearest to the product (if that is a power
// of two and the product lies below it, both binades' spacings give m), and the product exact in the fused addition of
// A = m 2^up. A float16 below 2^-14 has the spacing of 2^-14.
template <class H>
OCTET_ROW_INLINE uint32x4_t products4(uint32x4_t c, uint32x4_t d) {
  constexpr int up = float_traits<float>::mantissa_bits - float_traits<H>::mantissa_bits;
  uint32x4_t m = times(c, d);
  std::uint32_t planted = 0;
  if constexpr (is_float16<H>) {
    constexpr std::uint32_t least = (127 - 14) << 23;
    planted = (0u - (least >> up)) & 0xFFFF;
    m = vmaxq_u32(m, vdupq_n_u32(least));
  }
  m = vandq_u32(m, vdupq_n_u32(infinity));
  const uint32x4_t addend = vaddq_u32(m, vdupq_n_u32((static_cast<std::uint32_t>(up) << 23) + planted));
  return vsraq_n_u32(plus_product(addend, c, d), m, up);
}

// The products of 16 codes and descales, rounded once to a 16-bit float.
template <class F, class H>
OCTET_ROW_INLINE halves16 products16(const F* in, const words16& d) {
  const parts16<F> p = take_apart<F>(load(in));
  const bytes16 b = magnitudes16<F, bfloat16>(p.a);
  const words16 c = interleave({{vdupq_n_u16(0), vdupq_n_u16(0)}}, interleave(b.lower, b.upper));
  halves16 h = lower_halves({{products4<H>(c.at[0], d.at[0]), products4<H>(c.at[1], d.at[1]),
                              products4<H>(c.at[2], d.at[2]), products4<H>(c.at[3], d.at[3])}});
  if constexpr (is_bfloat16<H>) h = {{vqsubq_u16(h.at[0], vdupq_n_u16(128)), vqsubq_u16(h.at[1], vdupq_n_u16(128))}};
  if constexpr (F::has_infinity) {
    const halves16 infinite = interleave(p.infinite, p.infinite);
    const uint16x8_t beyond = vdupq_n_u16(float_traits<H>::infinity);
    h = {{vbslq_u16(infinite.at[0], beyond, h.at[0]), vbslq_u16(infinite.at[1], beyond, h.at[1])}};
  }
  const halves16 sign = interleave(p.sign, p.sign);
  const uint16x8_t sign_bit = vdupq_n_u16(0x8000);
  h = {{vbslq_u16(sign_bit, sign.at[0], h.at[0]), vbslq_u16(sign_bit, sign.at[1], h.at[1])}};
  if constexpr (F::has_nan) {
    const halves16 nan = interleave(p.nan, p.nan);
    const uint16x8_t no_number = vdupq_n_u16(0x7FFF);
    h = {{vbslq_u16(nan.at[0], no_number, h.at[0]), vbslq_u16(nan.at[1], no_number, h.at[1])}};
  }
  return h;
}

// Which descales the vectors take: moderate ones, and for float16 those that bring no value to 2^16. Every product is
// then a normal float, or zero, infinite or NaN as its code is.
template <class F, class T>
OCTET_HOST_INLINE constexpr std::uint32_t descale_end() {
  constexpr std::uint32_t largest = octet::detail::decode_bits(F::from_bits(F::max_code)) >> 23;
  constexpr std::uint32_t end = (127 + 15 + 127 - largest) << 23;
  return is_float16<T> && end < moderate.end ? end : moderate.end;
}
template <class F, class T>
inline constexpr bool is_dequantized = is_vector_target<F, float>() && is_vector_source<T>&& is_moderate_format<F>;

template <class F, class T>
OCTET_ROW_INLINE void dequantize16(const F* in, T* out, const words16& d) {
  if constexpr (std::is_same_v<T, float>) {
    const words16 c = floats16(in);
    store16(out, words16{{times(c.at[0], d.at[0]), times(c.at[1], d.at[1]), times(c.at[2], d.at[2]),
                          times(c.at[3], d.at[3])}});
  } else {
    store16(out, products16<F, T>(in, d));
  }
}

template <class F, class T>
struct dequantizing {
  const F* in;
  T* out;
  words16 d;

  OCTET_ROW_INLINE void block(std::size_t i) const { dequantize16(in + i, out + i, d); }
};

template <class F, class T>
OCTET_ROW void dequantize(const F* in, T* out, std::size_t n, descale d, bool streams) {
  if constexpr (is_dequantized<F, T>) {
    const words16 factors = all16(d.value());
    if (n != 0 && are_moderate(factors, descale_end<F, T>()) && is_ready())
      return walk(dequantizing<F, T>{in, out, factors}, n);
  }
  scalar::dequantize(in, out, n, d, streams);
}

template <class F, class T>
OCTET_ROW void dequantize_each(const F* in, T* out, std::size_t n, const descale* d) {
  if constexpr (is_dequantized<F, T>) {
    if (n >= 16 && is_ready()) {
      for (std::size_t i = 0;; i = i + 32 <= n ? i + 16 : n - 16) {
        const words16 factors = load_words16(d + i);
        if (are_moderate(factors, descale_end<F, T>()))
          dequantize16(in + i, out + i, factors);
        else
          scalar::dequantize_each(in + i, out + i, 16, d + i);
        if (i + 16 == n) return;
      }
    }
  }
  scalar::dequantize_each(in, out, n, d);
}

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
