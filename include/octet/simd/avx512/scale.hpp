// Scales in the AVX-512 row: what quantizing, dequantizing and measuring multiply and divide by.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include "../../convert.hpp"
#include "memory.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx512 {

// The float nearest to x / d, given d and r, the float nearest to 1 / d. With q = x r, off by at most two units of the
// last place, x - q d is exact in a fused multiply-add and q + (x - q d) r rounds correctly (Markstein 1990, theorem
// 1), where all of it is normal.
OCTET_ROW_INLINE __m512 corrected(__m512 q, __m512 x, __m512 d, __m512 r) {
  return _mm512_fmadd_round_ps(_mm512_fnmadd_round_ps(q, d, x, nearest), r, q, nearest);
}

OCTET_ROW_INLINE floats64 times(const floats64& x, const floats64& y) {
  return {{_mm512_mul_round_ps(x.at[0], y.at[0], nearest), _mm512_mul_round_ps(x.at[1], y.at[1], nearest),
           _mm512_mul_round_ps(x.at[2], y.at[2], nearest), _mm512_mul_round_ps(x.at[3], y.at[3], nearest)}};
}

// x / d, or x r, for a moderate d and r (is_moderate). The magnitude of x is first brought between 2^-70 and largest *
// d: a smaller one is far below half a unit, one from there on saturates, so the codes stay the same, and every step is
// normal. NaN is taken care of by its x.
template <class F, bool Divides>
struct moderate_scale {
  __m512 d, r, most;

  OCTET_ROW_INLINE moderate_scale(__m512 stored, __m512 multiplier)
      : d(stored),
        r(multiplier),
        most(_mm512_mul_round_ps(d, _mm512_set1_ps(octet::decode(F::from_bits(F::max_code))), nearest)) {}
  OCTET_ROW_INLINE explicit moderate_scale(group_scale s)
      : moderate_scale(_mm512_set1_ps(s.stored.value()), _mm512_set1_ps(s.multiplier.value())) {}
  OCTET_ROW_INLINE __m512 operator()(__m512 x) const {
    const __m512 raised = _mm512_range_ps(x, _mm512_set1_ps(0x1p-70f), greatest_magnitude);
    const __m512 a = _mm512_range_ps(raised, most, least_magnitude);
    const __m512 q = _mm512_mul_round_ps(a, r, nearest);
    if constexpr (Divides) return corrected(q, a, d, r);
    return q;
  }
};

// The same for a normal d that is not moderate: x and d are both multiplied by 2^83 or 2^-83 (exactly: with 2^-83 x is
// raised to 2^9 before, which divided by 2^40 is still below half a unit), which makes d moderate enough. A subnormal
// x, which the machine may take for 0 or take long to multiply, is the integer of its bits times 2^-149. `correction`
// is the reciprocal of the moderate d, or 0 where x r is wanted.
template <class F>
struct any_scale {
  __m512 unit, unit_of_subnormal, least, most, d, r, correction;

  OCTET_ROW_INLINE explicit any_scale(group_scale s) {
    const float stored = s.stored.value(), multiplier = s.multiplier.value();
    const bool up = bit_cast<std::uint32_t>(stored) < bit_cast<std::uint32_t>(1.0f);
    unit = _mm512_set1_ps(up ? 0x1p83f : 0x1p-83f);
    unit_of_subnormal = _mm512_set1_ps(up ? 0x1p-66f : 0.0f);
    least = _mm512_set1_ps(up ? 0.0f : 0x1p9f);
    d = _mm512_mul_round_ps(_mm512_set1_ps(stored), unit, nearest);
    r = _mm512_mul_round_ps(_mm512_set1_ps(multiplier), _mm512_set1_ps(up ? 0x1p-83f : 0x1p83f), nearest);
    most = _mm512_mul_round_ps(d, _mm512_set1_ps(octet::decode(F::from_bits(F::max_code))), nearest);
    correction = s.divides ? r : _mm512_setzero_ps();
  }
  OCTET_ROW_INLINE __m512 operator()(__m512 x) const {
    const __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000));
    const __m512i a = _mm512_andnot_si512(sign, _mm512_castps_si512(x));
    const __mmask16 subnormal = _mm512_cmplt_epu32_mask(a, _mm512_set1_epi32(0x00800000));
    const __m512 units = _mm512_mask_mov_ps(unit, subnormal, unit_of_subnormal);
    const __m512 raised = _mm512_range_ps(_mm512_castsi512_ps(a), least, greatest_magnitude);
    const __m512 value = _mm512_mask_cvt_roundepi32_ps(raised, subnormal, a, nearest);
    const __m512 scaled = _mm512_range_ps(_mm512_mul_round_ps(value, units, nearest), most, least_magnitude);
    const __m512 result = corrected(_mm512_mul_round_ps(scaled, r, nearest), scaled, d, correction);
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(x), _mm512_castps_si512(result), 0xCA));
  }
};

OCTET_ROW_INLINE floats64 all64(float x) {
  const __m512 v = _mm512_set1_ps(x);
  return {{v, v, v, v}};
}

// The floats that are in the range; and whether all are of 64 that lie within the span.
OCTET_ROW_INLINE __mmask16 within16(__m512 x, float_range range) {
  const __m512i above = _mm512_sub_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(range.first)));
  return _mm512_cmplt_epu32_mask(above, _mm512_set1_epi32(static_cast<int>(range.end - range.first)));
}
OCTET_ROW_INLINE bool within64(const floats64& x, float_range range, span64 s) {
  const std::uint64_t lanes =
      join64(within16(x.at[0], range), within16(x.at[1], range), within16(x.at[2], range), within16(x.at[3], range));
  return (s.lanes & ~lanes) == 0;
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
