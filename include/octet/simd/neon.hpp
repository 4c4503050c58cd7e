// The row of aarch64 machines: Advanced SIMD is part of every one of them.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_AARCH64
#include <arm_neon.h>

#include "scalar.hpp"

// The two kinds of functions this row holds. What it needs is there at any flags, so they name no target.
#define OCTET_ROW_INLINE OCTET_HOST_INLINE
#define OCTET_ROW OCTET_LOCAL

namespace octet {
inline namespace v0 {
namespace simd {
namespace neon {

// Encoding and scaling need an FPCR that rounds to nearest even, passes NaN on and reads halves as IEEE has them, and
// they raise overflow and invalid on the way. So where anything is set but the two flush-to-zero bits, FZ and FZ16,
// they are left to the scalar row.
OCTET_ROW_INLINE bool is_ready() {
  std::uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return (control & ~((std::uint64_t{1} << 24) | (std::uint64_t{1} << 19))) == 0;
}

// Every floating-point instruction of the row, written out: infinities and NaNs pass through, and no flag (-ffast-math,
// -ffp-contract) changes what a compiler does not know. Vectors are bits everywhere else.
OCTET_ROW_INLINE uint32x4_t magnitude(uint32x4_t x) {
  uint32x4_t a;
  __asm__("fabs %0.4s, %1.4s" : "=w"(a) : "w"(x));
  return a;
}
OCTET_ROW_INLINE uint32x4_t times(uint32x4_t x, uint32x4_t y) {
  uint32x4_t product;
  __asm__("fmul %0.4s, %1.4s, %2.4s" : "=w"(product) : "w"(x), "w"(y));
  return product;
}
OCTET_ROW_INLINE uint32x4_t plus_product(uint32x4_t sum, uint32x4_t x, uint32x4_t y) {
  __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(sum) : "w"(x), "w"(y));
  return sum;
}
OCTET_ROW_INLINE uint32x4_t minus_product(uint32x4_t difference, uint32x4_t x, uint32x4_t y) {
  __asm__("fmls %0.4s, %1.4s, %2.4s" : "+w"(difference) : "w"(x), "w"(y));
  return difference;
}
OCTET_ROW_INLINE uint32x4_t least_or_nan(uint32x4_t x, uint32x4_t y) {
  uint32x4_t least;
  __asm__("fmin %0.4s, %1.4s, %2.4s" : "=w"(least) : "w"(x), "w"(y));
  return least;
}
OCTET_ROW_INLINE uint32x4_t widened_low_halves(uint16x8_t halves) {
  uint32x4_t floats;
  __asm__("fcvtl %0.4s, %1.4h" : "=w"(floats) : "w"(halves));
  return floats;
}
OCTET_ROW_INLINE uint32x4_t widened_high_halves(uint16x8_t halves) {
  uint32x4_t floats;
  __asm__("fcvtl2 %0.4s, %1.8h" : "=w"(floats) : "w"(halves));
  return floats;
}

inline constexpr std::uint32_t infinity = 0x7F800000;

// -- Memory ---------------------------------------------------------------------------------------------------------

OCTET_ROW_INLINE uint8x16_t load(const void* p) { return vld1q_u8(static_cast<const std::uint8_t*>(p)); }
OCTET_ROW_INLINE uint16x8_t load8(const void* p) { return vreinterpretq_u16_u8(load(p)); }
OCTET_ROW_INLINE uint32x4_t load4(const void* p) { return vreinterpretq_u32_u8(load(p)); }
OCTET_ROW_INLINE void store(void* p, uint8x16_t v) { vst1q_u8(static_cast<std::uint8_t*>(p), v); }
OCTET_ROW_INLINE void store8(void* p, uint16x8_t v) { store(p, vreinterpretq_u8_u16(v)); }
OCTET_ROW_INLINE void store4(void* p, uint32x4_t v) { store(p, vreinterpretq_u8_u32(v)); }

// Written out four times wherever they are made: at -O2 g++ leaves a loop of four a loop, and its array in memory.
struct words16 {
  uint32x4_t at[4];
};
OCTET_ROW_INLINE words16 load_words16(const void* p) {
  const std::uint8_t* bytes = static_cast<const std::uint8_t*>(p);
  return {{load4(bytes), load4(bytes + 16), load4(bytes + 32), load4(bytes + 48)}};
}

// 16 halves of words.
struct halves16 {
  uint16x8_t at[2];
};
OCTET_ROW_INLINE halves16 lower_halves(const words16& w) {
  return {{vuzp1q_u16(vreinterpretq_u16_u32(w.at[0]), vreinterpretq_u16_u32(w.at[1])),
           vuzp1q_u16(vreinterpretq_u16_u32(w.at[2]), vreinterpretq_u16_u32(w.at[3]))}};
}
OCTET_ROW_INLINE halves16 upper_halves(const words16& w) {
  return {{vuzp2q_u16(vreinterpretq_u16_u32(w.at[0]), vreinterpretq_u16_u32(w.at[1])),
           vuzp2q_u16(vreinterpretq_u16_u32(w.at[2]), vreinterpretq_u16_u32(w.at[3]))}};
}
OCTET_ROW_INLINE uint8x16_t upper_bytes(const halves16& h) {
  return vuzp2q_u8(vreinterpretq_u8_u16(h.at[0]), vreinterpretq_u8_u16(h.at[1]));
}
// All ones where the half is above `limit`.
OCTET_ROW_INLINE uint8x16_t above16(const halves16& h, std::uint16_t limit) {
  const uint16x8_t most = vdupq_n_u16(limit);
  return upper_bytes({{vcgtq_u16(h.at[0], most), vcgtq_u16(h.at[1], most)}});
}
// 16 bytes as the lower and the upper bytes of halves; 16 halves as the lower and the upper halves of words.
OCTET_ROW_INLINE halves16 interleave(uint8x16_t lower, uint8x16_t upper) {
  return {{vreinterpretq_u16_u8(vzip1q_u8(lower, upper)), vreinterpretq_u16_u8(vzip2q_u8(lower, upper))}};
}
OCTET_ROW_INLINE words16 interleave(const halves16& lower, const halves16& upper) {
  return {{vreinterpretq_u32_u16(vzip1q_u16(lower.at[0], upper.at[0])),
           vreinterpretq_u32_u16(vzip2q_u16(lower.at[0], upper.at[0])),
           vreinterpretq_u32_u16(vzip1q_u16(lower.at[1], upper.at[1])),
           vreinterpretq_u32_u16(vzip2q_u16(lower.at[1], upper.at[1]))}};
}

// The magnitudes of 16 values as floats, the bytes that hold their signs, and all ones where a value is NaN. Of floats
// the last is not known here (codes16).
struct source16 {
  words16 magnitudes;
  uint8x16_t signs, nan;
};
template <class T>
OCTET_ROW_INLINE source16 load_source16(const T* x) {
  if constexpr (std::is_same_v<T, float>) {
    const words16 w = load_words16(x);
    return {{{magnitude(w.at[0]), magnitude(w.at[1]), magnitude(w.at[2]), magnitude(w.at[3])}},
            upper_bytes(upper_halves(w)),
            vdupq_n_u8(0)};
  } else {
    const halves16 h = {{load8(x), load8(x + 8)}};
    const halves16 a = {{vandq_u16(h.at[0], vdupq_n_u16(0x7FFF)), vandq_u16(h.at[1], vdupq_n_u16(0x7FFF))}};
    const uint8x16_t nan = above16(a, float_traits<T>::infinity);
    if constexpr (is_bfloat16<T>)
      return {interleave({{vdupq_n_u16(0), vdupq_n_u16(0)}}, a), upper_bytes(h), nan};
    else
      return {{{widened_low_halves(a.at[0]), widened_high_halves(a.at[0]), widened_low_halves(a.at[1]),
                widened_high_halves(a.at[1])}},
              upper_bytes(h),
              nan};
  }
}

// A kernel writes 16 results from 16 values at a time. A run that is no multiple of 16 ends with a block that overlaps
// the one before: input and output are apart, so the same bytes are written twice. A run shorter than a block goes
// through a buffer. n is not 0.
template <class Kernel>
OCTET_ROW_INLINE void walk(const Kernel& k, std::size_t n) {
  if (n < 16) {
    alignas(16) unsigned char values[16 * sizeof(*k.in)] = {}, results[16 * sizeof(*k.out)];
    std::memcpy(values, k.in, n * sizeof(*k.in));
    Kernel block = k;
    block.in = reinterpret_cast<decltype(k.in)>(values);
    block.out = reinterpret_cast<decltype(k.out)>(results);
    block.block(0);
    std::memcpy(k.out, results, n * sizeof(*k.out));
    return;
  }
  for (std::size_t i = 0; n - i >= 16; i += 16) k.block(i);
  if (n % 16 != 0) k.block(n - 16);
}

// -- Encoding -------------------------------------------------------------------------------------------------------

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

// -- Decoding -------------------------------------------------------------------------------------------------------

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

OCTET_ROW_INLINE void store16(float* out, const words16& w) {
  store4(out, w.at[0]);
  store4(out + 4, w.at[1]);
  store4(out + 8, w.at[2]);
  store4(out + 12, w.at[3]);
}
template <class T>
OCTET_ROW_INLINE void store16(T* out, const halves16& h) {
  store8(out, h.at[0]);
  store8(out + 8, h.at[1]);
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

// -- Reduction ------------------------------------------------------------------------------------------------------

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

// -- Scaled conversion ----------------------------------------------------------------------------------------------

// The floats nearest to a * r or, given d and r, the float nearest to 1 / d, to a / d. With q = a r, off by at most two
// units of the last place, a - q d is exact in a fused multiply-add and q + (a - q d) r rounds correctly (Markstein
// 1990, theorem 1: r is the correctly rounded reciprocal), if every step is normal: it is from 2^-70 to 2^80
// (is_moderate). A larger a is brought down to 2^80, since an infinite q has no remainder. Below 2^-70 a step may be
// subnormal, and lose 2^-150 or be flushed; what comes out is nearer to zero than half a unit all the same, and not
// below zero, as 2^-150 is less than any a. A product may be infinite, and NaN stays NaN.
template <bool Divides>
OCTET_ROW_INLINE uint32x4_t scale4(uint32x4_t a, uint32x4_t d, uint32x4_t r) {
  if constexpr (!Divides) return times(a, r);
  const uint32x4_t x = least_or_nan(a, vdupq_n_u32(bit_cast<std::uint32_t>(0x1p80f)));
  const uint32x4_t q = times(x, r);
  return plus_product(q, minus_product(x, q, d), r);
}

template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize16(const T* in, F* out, const words16& d, const words16& r) {
  const source16 x = load_source16(in);
  const words16& a = x.magnitudes;
  const words16 scaled = {{scale4<Divides>(a.at[0], d.at[0], r.at[0]), scale4<Divides>(a.at[1], d.at[1], r.at[1]),
                           scale4<Divides>(a.at[2], d.at[2], r.at[2]), scale4<Divides>(a.at[3], d.at[3], r.at[3])}};
  store(out, codes16<F, true, T>(x, scaled));
}

OCTET_ROW_INLINE words16 all16(float x) {
  const uint32x4_t bits = vdupq_n_u32(bit_cast<std::uint32_t>(x));
  return {{bits, bits, bits, bits}};
}

template <class F, bool Divides, class T>
struct quantizing {
  const T* in;
  F* out;
  words16 d, r;

  OCTET_ROW_INLINE void block(std::size_t i) const { quantize16<F, Divides>(in + i, out + i, d, r); }
};

template <class F, class T>
OCTET_ROW void quantize(const T* in, F* out, std::size_t n, group_scale s, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (n == 0) return;
    if (is_moderate(s) && is_ready()) {
      const words16 d = all16(s.stored.value()), r = all16(s.multiplier.value());
      if (divides(s)) return walk(quantizing<F, true, T>{in, out, d, r}, n);
      return walk(quantizing<F, false, T>{in, out, d, r}, n);
    }
  }
  scalar::quantize(in, out, n, s, streams);
}

template <class F, class T>
OCTET_ROW exact::bits_of<T> quantize_and_amax(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                              std::size_t next_n, bool streams) {
  neon::quantize(in, out, n, s, streams);
  return neon::amax(next, next_n, streams);
}

// Whether 16 floats are moderate and below the one with the bits `end`.
OCTET_ROW_INLINE bool are_moderate(const words16& x, std::uint32_t end = moderate.end) {
  const uint32x4_t zero = vdupq_n_u32(moderate.first);
  const uint32x4_t a = vmaxq_u32(vsubq_u32(x.at[0], zero), vsubq_u32(x.at[1], zero));
  const uint32x4_t b = vmaxq_u32(vsubq_u32(x.at[2], zero), vsubq_u32(x.at[3], zero));
  return vmaxvq_u32(vmaxq_u32(a, b)) < end - moderate.first;
}

template <class F, class T>
OCTET_ROW void quantize_each(const T* in, F* out, std::size_t n, group_scales s) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (n >= 16 && is_ready()) {
      for (std::size_t i = 0;; i = i + 32 <= n ? i + 16 : n - 16) {
        const words16 d = load_words16(s.stored + i), r = load_words16(s.multipliers + i);
        if (!are_moderate(d) || !are_moderate(r))
          scalar::quantize_each(in + i, out + i, 16, group_scales{s.stored + i, s.multipliers + i, s.divides});
        else if (s.divides)
          quantize16<F, true>(in + i, out + i, d, r);
        else
          quantize16<F, false>(in + i, out + i, d, r);
        if (i + 16 == n) return;
      }
    }
  }
  scalar::quantize_each(in, out, n, s);
}

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

// -- The line-up ----------------------------------------------------------------------------------------------------

OCTET_LOCAL bool runs_here() { return true; }

struct row {
  static constexpr const char* name = "neon";
  static constexpr bool (*runs_here)() = &neon::runs_here;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&neon::encode<F, T>, &neon::decode<F, T>};
  template <class T>
  static constexpr reduction<T> reduces = {&neon::amax<T>, &scalar::finite_amax<T>, &neon::amax_each<T>};
  template <class F, class T>
  static constexpr scaled_conversion<F, T> scales = {&neon::quantize<F, T>,        &neon::quantize_and_amax<F, T>,
                                                     &neon::quantize_each<F, T>,   &neon::dequantize<F, T>,
                                                     &neon::dequantize_each<F, T>, &scalar::measure<F, T>};
  template <class F, class T>
  static constexpr product<F, T> products = scalar::row::products<F, T>;
};

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet
#undef OCTET_ROW
#undef OCTET_ROW_INLINE
#endif
