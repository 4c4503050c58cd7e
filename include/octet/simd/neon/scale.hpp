// Scales in the NEON row: what quantizing and dequantizing multiply and divide by.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_AARCH64
#include "memory.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace neon {

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

OCTET_ROW_INLINE words16 all16(float x) {
  const uint32x4_t bits = vdupq_n_u32(bit_cast<std::uint32_t>(x));
  return {{bits, bits, bits, bits}};
}

// Whether 16 floats are moderate and below the one with the bits `end`.
OCTET_ROW_INLINE bool are_moderate(const words16& x, std::uint32_t end = moderate.end) {
  const uint32x4_t zero = vdupq_n_u32(moderate.first);
  const uint32x4_t a = vmaxq_u32(vsubq_u32(x.at[0], zero), vsubq_u32(x.at[1], zero));
  const uint32x4_t b = vmaxq_u32(vsubq_u32(x.at[2], zero), vsubq_u32(x.at[3], zero));
  return vmaxvq_u32(vmaxq_u32(a, b)) < end - moderate.first;
}

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
