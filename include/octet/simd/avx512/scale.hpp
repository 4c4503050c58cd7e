// Scales in the AVX-512 row: what quantizing, dequantizing and measuring multiply and divide by.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include "../scalar.hpp"
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

// The same for a normal d that is too large for it: all of it times 2^-83, which is exact, since x is raised to 2^9
// before; divided by 2^40 that is still below half a unit. `correction` is the reciprocal of d, or 0 where x r is
// wanted.
template <class F>
struct large_scale {
  __m512 most, d, r, correction;

  OCTET_ROW_INLINE explicit large_scale(group_scale s) {
    d = _mm512_mul_round_ps(_mm512_set1_ps(s.stored.value()), _mm512_set1_ps(0x1p-83f), nearest);
    r = _mm512_mul_round_ps(_mm512_set1_ps(s.multiplier.value()), _mm512_set1_ps(0x1p83f), nearest);
    most = _mm512_mul_round_ps(d, _mm512_set1_ps(octet::decode(F::from_bits(F::max_code))), nearest);
    correction = divides(s) ? r : _mm512_setzero_ps();
  }
  OCTET_ROW_INLINE __m512 operator()(__m512 x) const {
    const __m512 raised = _mm512_range_ps(x, _mm512_set1_ps(0x1p9f), greatest_magnitude);
    const __m512 value = _mm512_mul_round_ps(raised, _mm512_set1_ps(0x1p-83f), nearest);
    const __m512 a = _mm512_range_ps(value, most, least_magnitude);
    return corrected(_mm512_mul_round_ps(a, r, nearest), a, d, correction);
  }
};

// The same for a normal d that is too small for it: all of it times 2^83, exactly. A subnormal x, which the machine may
// take for 0 or take long to multiply, is the integer of its bits times 2^-149.
template <class F, bool Divides>
struct small_scale {
  __m512 most, d, r;

  OCTET_ROW_INLINE explicit small_scale(group_scale s) {
    d = _mm512_mul_round_ps(_mm512_set1_ps(s.stored.value()), _mm512_set1_ps(0x1p83f), nearest);
    r = _mm512_mul_round_ps(_mm512_set1_ps(s.multiplier.value()), _mm512_set1_ps(0x1p-83f), nearest);
    most = _mm512_mul_round_ps(d, _mm512_set1_ps(octet::decode(F::from_bits(F::max_code))), nearest);
  }
  OCTET_ROW_INLINE __m512 operator()(__m512 x) const {
    const __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000));
    const __m512i a = _mm512_andnot_si512(sign, _mm512_castps_si512(x));
    const __mmask16 subnormal = _mm512_cmplt_epu32_mask(a, _mm512_set1_epi32(0x00800000));
    const __m512 units = _mm512_mask_mov_ps(_mm512_set1_ps(0x1p83f), subnormal, _mm512_set1_ps(0x1p-66f));
    const __m512 number = _mm512_mask_cvt_roundepi32_ps(_mm512_castsi512_ps(a), subnormal, a, nearest);
    const __m512 value = _mm512_range_ps(_mm512_mul_round_ps(number, units, nearest), most, least_magnitude);
    __m512 result = _mm512_mul_round_ps(value, r, nearest);
    if constexpr (Divides) result = corrected(result, value, d, r);
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

// The floats nearest to 16 doubles.
OCTET_ROW_INLINE __m512 narrow16(__m512d low, __m512d high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvt_roundpd_ps(low, nearest)),
                            _mm512_cvt_roundpd_ps(high, nearest), 1);
}

// The descales of 16 amaxes that are normal floats.
template <class F>
OCTET_ROW_INLINE __m512d ratio8(__m256 amax, const descale_steps<F>& steps) {
  const __m512d x = _mm512_mul_round_pd(_mm512_cvtps_pd(amax), _mm512_set1_pd(steps.per_largest), nearest);
  const __m512d raised =
      _mm512_max_pd(_mm512_mul_round_pd(x, _mm512_set1_pd(steps.power), nearest), _mm512_set1_pd(0x1p-126));
  return _mm512_min_pd(raised, _mm512_set1_pd(0x1p126));
}
template <class F>
OCTET_ROW_INLINE __m512 descales16(__m512i amax, const descale_steps<F>& steps) {
  if (steps.by_ratio) {
    const __m512 a = _mm512_castsi512_ps(amax);
    const __m512 d = narrow16(ratio8(_mm512_castps512_ps256(a), steps), ratio8(_mm512_extractf32x8_ps(a, 1), steps));
    if (!steps.up) return d;
    const __m512i up = _mm512_add_epi32(_mm512_castps_si512(d), _mm512_set1_epi32(0x007FFFFF));
    return _mm512_castsi512_ps(_mm512_and_si512(up, _mm512_set1_epi32(0x7F800000)));
  }
  const __m512i field = _mm512_srli_epi32(_mm512_add_epi32(amax, _mm512_set1_epi32(steps.added)), 23);
  const __m512i raised =
      _mm512_max_epi32(_mm512_add_epi32(field, _mm512_set1_epi32(steps.margin)), _mm512_set1_epi32(1));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_min_epi32(raised, _mm512_set1_epi32(253)), 23));
}

// The floats nearest to the reciprocals of 16 floats from 2^-126 to 2^126: a double is off by far less than the
// distance of a reciprocal of 24 bits from a tie (exact::wide_quotient).
OCTET_ROW_INLINE __m512 reciprocals16(__m512 x) {
  const __m512d one = _mm512_set1_pd(1);
  return narrow16(_mm512_div_round_pd(one, _mm512_cvtps_pd(_mm512_castps512_ps256(x)), nearest),
                  _mm512_div_round_pd(one, _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)), nearest));
}

template <class F>
OCTET_ROW void scales_of(const float* amax, std::size_t n, const scale_rule& rule, descale* stored,
                         scale* multipliers) {
  const descale_steps<F> steps(rule);
  if (!steps.known) return scalar::scales_of<F>(amax, n, rule, stored, multipliers);
  const __m512i floor = _mm512_castps_si512(_mm512_set1_ps(rule.floor));
  const __m512i cap = _mm512_castps_si512(_mm512_set1_ps(rule.cap));
  for (std::size_t i = 0; i < n; i += 16) {
    const span64 s(n - i);
    const __mmask16 lanes = s.part(0);
    __m512i a = _mm512_and_si512(_mm512_maskz_loadu_epi32(lanes, amax + i), _mm512_set1_epi32(0x7FFFFFFF));
    const __mmask16 finite = _mm512_cmplt_epu32_mask(a, _mm512_set1_epi32(0x7F800000));
    a = _mm512_min_epu32(_mm512_max_epu32(a, floor), cap);
    const __mmask16 normal = _mm512_cmpge_epu32_mask(a, _mm512_set1_epi32(0x00800000));
    if ((lanes & ~(finite & normal)) == 0) {
      const __m512 d = descales16(a, steps);
      _mm512_mask_storeu_ps(reinterpret_cast<float*>(stored + i), lanes, d);
      _mm512_mask_storeu_ps(reinterpret_cast<float*>(multipliers + i), lanes, reciprocals16(d));
    } else {
      scalar::scales_of<F>(amax + i, n - i < 16 ? n - i : 16, rule, stored + i, multipliers + i);
    }
  }
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
