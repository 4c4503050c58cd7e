// What all of the NEON row is made of: its instructions, and vectors of 16 values from and to memory.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_AARCH64
#include <arm_neon.h>

#include "../kernels.hpp"

#include "begin.hpp"

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

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
