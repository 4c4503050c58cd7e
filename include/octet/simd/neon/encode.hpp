// Encoding in the NEON row, 16 values at a time.
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

// The codes of 4 magnitudes as scalar::nearest_code has them, but without an upper end, in the lower halves of words.
// Let m be the power of two at or below |x|, but at least the format's least normal value; M the mantissa bits; and A =
// m 2^(23 - M). |x| + A, one fused operation, is |x| rounded to the format's spacing, which is the sum's last place.
// A's mantissa is not zero but an even number below 2^16, minus what the least exponent adds to the code, least >> up;
// so the lower half of the sum, plus m >> up, is the code (below 2^16, and above the largest where |x| is too large).
// Where A is beyond the largest float, |x| is at least 2^(105 + M) or infinite, and the sum is infinite: its lower half
// is zero, and m >> up is 2^M times an exponent field of at least 232 + M: beyond every code of 8 bits, and below 2^16.
// The sum of NaN is NaN.
template <class F>
OCTET_ROW_INLINE uint32x4_t rounded4(uint32x4_t a) {
  constexpr int up = float_traits<float>::mantissa_bits - F::mantissa_bits;
  constexpr std::uint32_t least = static_cast<std::uint32_t>(F::least_exponent + 127) << 23;
  constexpr std::uint32_t factor = (static_cast<std::uint32_t>(127 + up) << 23) | ((0u - (least >> up)) & 0xFFFF);
  const uint32x4_t m = vandq_u32(vmaxq_u32(a, vdupq_n_u32(least)), vdupq_n_u32(infinity));
  return vsraq_n_u32(plus_product(a, m, vdupq_n_u32(factor)), m, up);
}

// The codes of 16 values x, whose magnitudes, scaled or not, are a (NaN where x, a float, is NaN). The upper halves of
// the sums are 7FC0 or more for NaN, which is quiet there, and 7F80 or less otherwise.
template <class F, bool Saturates, class T>
OCTET_ROW_INLINE uint8x16_t codes16(const source16& x, const words16& a) {
  constexpr std::uint8_t beyond = F::has_infinity ? F::infinity_code : F::nan_code;
  constexpr std::uint8_t most = Saturates ? F::max_code : beyond;
  const words16 sums = {{rounded4<F>(a.at[0]), rounded4<F>(a.at[1]), rounded4<F>(a.at[2]), rounded4<F>(a.at[3])}};
  const halves16 codes = lower_halves(sums);
  const uint8x16_t capped = vminq_u8(vqmovn_high_u16(vqmovn_u16(codes.at[0]), codes.at[1]), vdupq_n_u8(most));
  uint8x16_t signs = x.signs;
  if constexpr (F::width < 8) signs = vshrq_n_u8(signs, 8 - F::width);
  uint8x16_t code;
  if constexpr (F::has_negative_zero)
    code = vbslq_u8(vdupq_n_u8(F::sign_mask), signs, capped);
  else  // a code beyond the largest one may have the place of the sign
    code = vandq_u8(vorrq_u8(capped, vandq_u8(signs, vdupq_n_u8(F::sign_mask))), vtstq_u8(capped, capped));
  const uint8x16_t nan = std::is_same_v<T, float> ? above16(upper_halves(sums), 0x7F9F) : x.nan;
  return vbslq_u8(nan, vdupq_n_u8(F::nan_code), code);
}

// E8M0, upward: the exponent field, plus one where there is a mantissa: infinity has 255 and NaN 256. Subnormals above
// 2^-127 are code 1.
OCTET_ROW_INLINE uint32x4_t exponents4(uint32x4_t a) {
  const uint32x4_t up = vshrq_n_u32(vaddq_u32(a, vdupq_n_u32(0x007FFFFF)), 23);
  return vandq_u32(vcgtq_u32(a, vdupq_n_u32(0x00400000)), up);
}
template <bool Saturates>
OCTET_ROW_INLINE uint8x16_t exponents16(const words16& a) {
  halves16 codes = lower_halves({{exponents4(a.at[0]), exponents4(a.at[1]), exponents4(a.at[2]), exponents4(a.at[3])}});
  if constexpr (Saturates) {  // 255 and 256 are 254 and 255
    const uint16x8_t most = vdupq_n_u16(0xFE);
    codes = {
        {vaddq_u16(codes.at[0], vcgtq_u16(codes.at[0], most)), vaddq_u16(codes.at[1], vcgtq_u16(codes.at[1], most))}};
  }
  return vqmovn_high_u16(vqmovn_u16(codes.at[0]), codes.at[1]);
}

template <class F, bool Saturates, class T>
struct encoding {
  const T* in;
  F* out;

  OCTET_ROW_INLINE void block(std::size_t i) const {
    const source16 x = load_source16(in + i);
    if constexpr (F::is_signed)
      store(out + i, codes16<F, Saturates, T>(x, x.magnitudes));
    else
      store(out + i, exponents16<Saturates>(x.magnitudes));
  }
};

template <class F, class T>
OCTET_ROW void encode(const T* in, F* out, std::size_t n, overflow o, bool streams) {
  if constexpr (!is_vector_source<T>) {
    scalar::encode(in, out, n, o, streams);
  } else {
    if (n == 0) return;
    if (!is_ready())
      scalar::encode(in, out, n, o, streams);
    else if (o == overflow::saturate)
      walk(encoding<F, true, T>{in, out}, n);
    else
      walk(encoding<F, false, T>{in, out}, n);
  }
}

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
