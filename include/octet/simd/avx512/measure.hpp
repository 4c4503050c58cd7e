// Statistics of what quantizing lost, in the AVX-512 row.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include "../scalar.hpp"
#include "decode.hpp"
#include "encode.hpp"
#include "memory.hpp"
#include "scale.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx512 {

// The double nearest to a / b; a is 0 or has 26 bits, b 24. With y = (1 + e + e^2) / b, e from an estimate of 1 / b
// that is good to 2^-14, y b is 1 to within 2^-41, and q = a y is a / b to within as much. a - q b is a multiple of the
// product of the last places of q and b, and less than 2^38 times that, so it is exact in a fused multiply-add; and q +
// (a - q b) y, before it is rounded, is a / b to within 2^-81. A midpoint of doubles has 54 bits, so it is no quotient
// of these: its product with b, 78 bits at most, differs from a by a unit or more of its last place, 2^-78 of a. So
// nothing is rounded to the other side.
OCTET_ROW_INLINE __m512d quotient8(__m512d a, __m512d b) {
  const __m512d estimate = _mm512_rcp14_pd(b), one = _mm512_set1_pd(1);
  const __m512d e = _mm512_fnmadd_round_pd(estimate, b, one, nearest);
  const __m512d y = _mm512_fmadd_round_pd(estimate, _mm512_fmadd_round_pd(e, e, e, nearest), estimate, nearest);
  const __m512d q = _mm512_mul_round_pd(a, y, nearest);
  return _mm512_fmadd_round_pd(_mm512_fnmadd_round_pd(q, b, a, nearest), y, q, nearest);
}

// The sums of row_losses, lane by lane in the order of the elements. The squares are exact, so a fused multiply-add is
// the sum of one. The rounding is always to nearest.
struct loss_sums {
  __m512d signal, error, relative;

  OCTET_ROW_INLINE explicit loss_sums(const row_losses& sums)
      : signal(_mm512_loadu_pd(sums.signal)),
        error(_mm512_loadu_pd(sums.error)),
        relative(_mm512_loadu_pd(sums.relative)) {}
  OCTET_ROW_INLINE void store(row_losses& sums) const {
    _mm512_storeu_pd(sums.signal, signal);
    _mm512_storeu_pd(sums.error, error);
    _mm512_storeu_pd(sums.relative, relative);
  }
  OCTET_ROW_INLINE void add8(__m256 x, __m256 decoded, __mmask8 compared) {
    const __m512i magnitude = _mm512_set1_epi64(0x7FFFFFFFFFFFFFFF), bits_26 = _mm512_set1_epi64(-(1 << 27));
    const __m512d value = _mm512_cvtps_pd(x);
    const __m512i off =
        _mm512_and_si512(bits_26, _mm512_castpd_si512(_mm512_sub_round_pd(_mm512_cvtps_pd(decoded), value, nearest)));
    const __m512d a = _mm512_castsi512_pd(_mm512_and_si512(off, magnitude));
    const __m512d b = _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(value), magnitude));
    signal = _mm512_mask3_fmadd_round_pd(b, b, signal, compared, nearest);
    error = _mm512_mask3_fmadd_round_pd(a, a, error, compared, nearest);
    relative = _mm512_mask_add_round_pd(relative, compared, relative, quotient8(a, b), nearest);
  }
  OCTET_ROW_INLINE void add16(__m512 x, __m512 decoded, __mmask16 compared) {
    add8(_mm512_castps512_ps256(x), _mm512_castps512_ps256(decoded), static_cast<__mmask8>(compared));
    add8(_mm512_extractf32x8_ps(x, 1), _mm512_extractf32x8_ps(decoded, 1), static_cast<__mmask8>(compared >> 8));
  }
};

// What 16 values are, and what their codes decode to; and of 64.
struct classes16 {
  __mmask16 nonzero, finite, clipped, decoded_zero, decoded_finite;
};
template <class F, bool Divides>
OCTET_ROW_INLINE classes16 classes_of(__m512 x, __m512 decoded, const moderate_scale<F, Divides>& scaled) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  return {_mm512_test_epi32_mask(_mm512_castps_si512(x), magnitude),
          static_cast<__mmask16>(~_mm512_fpclass_ps_mask(x, 0x99)), overflow16<F>(scaled(x)),
          _mm512_testn_epi32_mask(_mm512_castps_si512(decoded), magnitude),
          static_cast<__mmask16>(~_mm512_fpclass_ps_mask(decoded, 0x99))};
}
OCTET_ROW_INLINE std::size_t count_of(std::uint64_t lanes) {
  return static_cast<std::size_t>(__builtin_popcountll(lanes));
}

// Whether one of 64 values is subnormal: widening could flush it. Less one, their magnitudes are the least of all as
// unsigned integers, and that of zero the largest.
OCTET_ROW_INLINE __m512i magnitudes_less_1(__m512 x) {
  const __m512i a = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
  return _mm512_sub_epi32(a, _mm512_set1_epi32(1));
}
OCTET_ROW_INLINE bool has_subnormal(const floats64& x) {
  const __m512i a = _mm512_min_epu32(magnitudes_less_1(x.at[0]), magnitudes_less_1(x.at[1]));
  const __m512i b = _mm512_min_epu32(magnitudes_less_1(x.at[2]), magnitudes_less_1(x.at[3]));
  return _mm512_cmplt_epu32_mask(_mm512_min_epu32(a, b), _mm512_set1_epi32(0x007FFFFF)) != 0;
}

// Elements 0, 8, 16, ... of these are of lane 0. Values and codes outside a span are zeros, which count for nothing.
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void measure_all(const T* in, const F* codes, std::size_t n, group_scale s, row_losses& losses) {
  const floats64 d = all64(s.stored.value());
  moderate_scale<F, Divides> scales(s);
  scales.most = _mm512_set1_ps(0x1p80f);  // divided by 2^40 it still overflows
  loss_sums sums(losses);
  for (std::size_t i = 0; i < n; i += 64) {
    const span64 span(n - i);
    const floats64 x = load64(in + i, span);
    if (has_subnormal(x)) {
      sums.store(losses);
      scalar::measure(in + i, codes + i, n - i < 64 ? n - i : 64, 0, s, losses);
      sums = loss_sums(losses);
      continue;
    }
    const floats64 c = decode64(codes + i, span);
    const floats64 y = times(c, d);
    const classes16 k0 = classes_of<F, Divides>(x.at[0], y.at[0], scales);
    const classes16 k1 = classes_of<F, Divides>(x.at[1], y.at[1], scales);
    const classes16 k2 = classes_of<F, Divides>(x.at[2], y.at[2], scales);
    const classes16 k3 = classes_of<F, Divides>(x.at[3], y.at[3], scales);
    const std::uint64_t nonzero = join64(k0.nonzero, k1.nonzero, k2.nonzero, k3.nonzero);
    const std::uint64_t finite = join64(k0.finite, k1.finite, k2.finite, k3.finite);
    const std::uint64_t clipped = join64(k0.clipped, k1.clipped, k2.clipped, k3.clipped);
    const std::uint64_t decoded_zero = join64(k0.decoded_zero, k1.decoded_zero, k2.decoded_zero, k3.decoded_zero);
    const std::uint64_t decoded_finite =
        join64(k0.decoded_finite, k1.decoded_finite, k2.decoded_finite, k3.decoded_finite);
    const std::uint64_t compared = nonzero & finite & decoded_finite;
    losses.not_finite += count_of(~finite);
    losses.clipped += count_of(finite & clipped);
    losses.flushed += count_of(nonzero & decoded_zero);
    losses.poisoned += count_of(finite & ~decoded_finite);
    losses.compared += count_of(compared);
    sums.add16(x.at[0], y.at[0], static_cast<__mmask16>(compared));
    sums.add16(x.at[1], y.at[1], static_cast<__mmask16>(compared >> 16));
    sums.add16(x.at[2], y.at[2], static_cast<__mmask16>(compared >> 32));
    sums.add16(x.at[3], y.at[3], static_cast<__mmask16>(compared >> 48));
  }
  sums.store(losses);
}

template <class F, class T>
OCTET_ROW void measure(const T* in, const F* codes, std::size_t n, std::size_t first, group_scale s, row_losses& sums) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (is_moderate(s)) {
      const std::size_t to_lane_0 = (0 - first) % 8, head = to_lane_0 < n ? to_lane_0 : n;
      if (head != 0) scalar::measure(in, codes, head, first, s, sums);
      if (divides(s))
        measure_all<F, true>(in + head, codes + head, n - head, s, sums);
      else
        measure_all<F, false>(in + head, codes + head, n - head, s, sums);
      return;
    }
  }
  scalar::measure(in, codes, n, first, s, sums);
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
