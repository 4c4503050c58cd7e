// Scales in the AVX2 row: what quantizing, dequantizing and measuring multiply and divide by.
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
namespace avx2 {

// The floats nearest to x / d, given d and r, the float nearest to 1 / d. With q = x r, off by at most two units of the
// last place, x - q d is exact in a fused multiply-add and q + (x - q d) r rounds correctly (Markstein 1990, theorem
// 1), where all of it is normal and rounds to nearest even. The empty statement hides from a compiler that may
// rearrange sums where q comes from.
OCTET_ROW_INLINE __m256 corrected(__m256 q, __m256 x, __m256 d, __m256 r) {
  __asm__("" : "+x"(q));
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(q, d, x), r, q);
}

// x / d, or x r, of magnitudes x up to most() = largest * d, which saturate from there on, for a moderate d and r
// (is_moderate). Raised to 2^-70, a magnitude stays far below half a unit, and every step is normal.
template <class F, bool Divides>
struct moderate_scale {
  __m256 d, r;

  OCTET_ROW_INLINE moderate_scale(__m256 stored, __m256 multiplier) : d(stored), r(multiplier) {}
  OCTET_ROW_INLINE explicit moderate_scale(group_scale s)
      : moderate_scale(_mm256_set1_ps(s.stored.value()), _mm256_set1_ps(s.multiplier.value())) {}
  OCTET_ROW_INLINE __m256i most() const {
    return _mm256_castps_si256(_mm256_mul_ps(d, _mm256_set1_ps(octet::decode(F::from_bits(F::max_code)))));
  }
  OCTET_ROW_INLINE __m256i limit() const { return most(); }
  OCTET_ROW_INLINE __m256i operator()(__m256i a) const {
    const __m256 x = _mm256_castsi256_ps(_mm256_max_epi32(a, _mm256_castps_si256(_mm256_set1_ps(0x1p-70f))));
    const __m256 q = _mm256_mul_ps(x, r);
    return _mm256_castps_si256(Divides ? corrected(q, x, d, r) : q);
  }
};

// The same for a normal d that is not moderate: x and d are both multiplied by 2^83 or 2^-83 (exactly: with 2^-83 x is
// raised to 2^9 before, which divided by 2^40 is still below half a unit), which makes d moderate enough. A subnormal
// x, which the machine may take for 0 or take long to multiply, is the integer of its bits times 2^-149. `correction`
// is the reciprocal of the moderate d, or 0 where x r is wanted.
template <class F>
struct any_scale {
  __m256 unit, unit_of_subnormal, least, highest, d, r, correction;

  OCTET_ROW_INLINE explicit any_scale(group_scale s) {
    const float stored = s.stored.value(), multiplier = s.multiplier.value();
    const bool up = bit_cast<std::uint32_t>(stored) < bit_cast<std::uint32_t>(1.0f);
    unit = _mm256_set1_ps(up ? 0x1p83f : 0x1p-83f);
    unit_of_subnormal = _mm256_set1_ps(up ? 0x1p-66f : 0.0f);
    least = _mm256_set1_ps(up ? 0.0f : 0x1p9f);
    d = _mm256_mul_ps(_mm256_set1_ps(stored), unit);
    r = _mm256_mul_ps(_mm256_set1_ps(multiplier), _mm256_set1_ps(up ? 0x1p-83f : 0x1p83f));
    highest = _mm256_mul_ps(d, _mm256_set1_ps(octet::decode(F::from_bits(F::max_code))));
    correction = s.divides ? r : _mm256_setzero_ps();
  }
  OCTET_ROW_INLINE __m256i limit() const { return _mm256_set1_epi32(infinity); }
  OCTET_ROW_INLINE __m256i most() const { return _mm256_set1_epi32(magnitude_bits); }
  OCTET_ROW_INLINE __m256i operator()(__m256i a) const {
    const __m256 subnormal = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), a));
    const __m256 raised = _mm256_castsi256_ps(_mm256_max_epi32(a, _mm256_castps_si256(least)));
    const __m256 units = _mm256_blendv_ps(unit, unit_of_subnormal, subnormal);
    const __m256 value = _mm256_blendv_ps(raised, _mm256_cvtepi32_ps(a), subnormal);
    const __m256i scaled = _mm256_castps_si256(_mm256_mul_ps(value, units));
    const __m256 x = _mm256_castsi256_ps(_mm256_min_epi32(scaled, _mm256_castps_si256(highest)));
    return _mm256_castps_si256(corrected(_mm256_mul_ps(x, r), x, d, correction));
  }
};

// Whether all of 32 floats are in the range.
OCTET_ROW_INLINE bool within32(const floats32& x, float_range range) {
  const __m256i least = _mm256_set1_epi32(static_cast<int>(range.first));
  const __m256i most = _mm256_set1_epi32(static_cast<int>(range.end) - 1);
  const words32 w = {{_mm256_castps_si256(x.at[0]), _mm256_castps_si256(x.at[1]), _mm256_castps_si256(x.at[2]),
                      _mm256_castps_si256(x.at[3])}};
  const __m256i below =
      _mm256_or_si256(_mm256_or_si256(_mm256_cmpgt_epi32(least, w.at[0]), _mm256_cmpgt_epi32(least, w.at[1])),
                      _mm256_or_si256(_mm256_cmpgt_epi32(least, w.at[2]), _mm256_cmpgt_epi32(least, w.at[3])));
  return !any(_mm256_or_si256(below, _mm256_cmpgt_epi32(merged_max(w), most)));
}

// The floats nearest to 8 doubles.
OCTET_ROW_INLINE __m256 narrow8(__m256d low, __m256d high) {
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

// The descales of 8 amaxes that are normal floats.
template <class F>
OCTET_ROW_INLINE __m256d ratio4(__m128 amax, const descale_steps<F>& steps) {
  const __m256d x = _mm256_mul_pd(_mm256_cvtps_pd(amax), _mm256_set1_pd(steps.per_largest));
  const __m256d raised = _mm256_max_pd(_mm256_mul_pd(x, _mm256_set1_pd(steps.power)), _mm256_set1_pd(0x1p-126));
  return _mm256_min_pd(raised, _mm256_set1_pd(0x1p126));
}
template <class F>
OCTET_ROW_INLINE __m256 descales8(__m256i amax, const descale_steps<F>& steps) {
  if (steps.by_ratio) {
    const __m256 a = _mm256_castsi256_ps(amax);
    const __m256 d = narrow8(ratio4(_mm256_castps256_ps128(a), steps), ratio4(_mm256_extractf128_ps(a, 1), steps));
    if (!steps.up) return d;
    const __m256i up = _mm256_add_epi32(_mm256_castps_si256(d), _mm256_set1_epi32(0x007FFFFF));
    return _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(infinity)));
  }
  const __m256i field = _mm256_srli_epi32(_mm256_add_epi32(amax, _mm256_set1_epi32(steps.added)), 23);
  const __m256i raised =
      _mm256_max_epi32(_mm256_add_epi32(field, _mm256_set1_epi32(steps.margin)), _mm256_set1_epi32(1));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_min_epi32(raised, _mm256_set1_epi32(253)), 23));
}

// The floats nearest to the reciprocals of 8 floats from 2^-126 to 2^126: a double is off by far less than the distance
// of a reciprocal of 24 bits from a tie (exact::wide_quotient).
OCTET_ROW_INLINE __m256 reciprocals8(__m256 x) {
  const __m256d one = _mm256_set1_pd(1);
  return narrow8(_mm256_div_pd(one, _mm256_cvtps_pd(_mm256_castps256_ps128(x))),
                 _mm256_div_pd(one, _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))));
}

template <class F>
OCTET_ROW void scales_of(const float* amax, std::size_t n, const scale_rule& rule, descale* stored,
                         scale* multipliers) {
  const descale_steps<F> steps(rule);
  const __m256i floor = _mm256_castps_si256(_mm256_set1_ps(rule.floor));
  const __m256i cap = _mm256_castps_si256(_mm256_set1_ps(rule.cap));
  const bool vectors = steps.known && scalar::rounds_to_nearest();
  std::size_t i = 0;
  for (; vectors && n - i >= 8; i += 8) {
    __m256i a = _mm256_and_si256(load(amax + i), _mm256_set1_epi32(magnitude_bits));
    const __m256i not_finite = _mm256_cmpgt_epi32(a, _mm256_set1_epi32(infinity - 1));
    a = _mm256_min_epi32(_mm256_max_epi32(a, floor), cap);
    if (any(_mm256_or_si256(not_finite, _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), a)))) {
      scalar::scales_of<F>(amax + i, 8, rule, stored + i, multipliers + i);
    } else {
      const __m256 d = descales8(a, steps);
      store(stored + i, _mm256_castps_si256(d));
      store(multipliers + i, _mm256_castps_si256(reciprocals8(d)));
    }
  }
  scalar::scales_of<F>(amax + i, n - i, rule, stored + i, multipliers + i);
}

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
