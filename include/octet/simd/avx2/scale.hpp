// Scales in the AVX2 row: what quantizing, dequantizing and measuring multiply and divide by.
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

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
