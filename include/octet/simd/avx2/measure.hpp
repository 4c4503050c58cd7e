// Statistics of what quantizing lost, in the AVX2 row.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include <cstring>

#include "../scalar.hpp"
#include "decode.hpp"
#include "encode.hpp"
#include "memory.hpp"
#include "scale.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx2 {

// The sums of row_losses for lanes 0 to 3 or 4 to 7, in the order of the elements. The squares are exact, so a fused
// multiply-add is the sum of one. The statements hide from a compiler that may rearrange sums or turn divisions into
// products what there is to rearrange.
struct loss_sums {
  __m256d signal, error, relative;

  OCTET_ROW_INLINE loss_sums(const row_losses& sums, int lane)
      : signal(_mm256_loadu_pd(sums.signal + lane)),
        error(_mm256_loadu_pd(sums.error + lane)),
        relative(_mm256_loadu_pd(sums.relative + lane)) {}
  OCTET_ROW_INLINE void store_at(row_losses& sums, int lane) const {
    _mm256_storeu_pd(sums.signal + lane, signal);
    _mm256_storeu_pd(sums.error + lane, error);
    _mm256_storeu_pd(sums.relative + lane, relative);
  }
  // Zeros that decode to zero add nothing: 0 over the least magnitude of a float.
  OCTET_ROW_INLINE void add4(__m128i x, __m128i decoded) {
    const __m256d magnitude = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7FFFFFFFFFFFFFFF));
    const __m256d bits_26 = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7FFFFFFFF8000000));
    const __m256d value = _mm256_cvtps_pd(_mm_castsi128_ps(x));
    __m256d difference = _mm256_sub_pd(_mm256_cvtps_pd(_mm_castsi128_ps(decoded)), value);
    __asm__("" : "+x"(difference));
    const __m256d a = _mm256_and_pd(difference, bits_26);
    const __m256d b = _mm256_max_pd(_mm256_and_pd(value, magnitude), _mm256_set1_pd(0x1p-149));
    signal = _mm256_fmadd_pd(value, value, signal);
    error = _mm256_fmadd_pd(a, a, error);
    __m256d quotient;
    __asm__("vdivpd %2, %1, %0" : "=x"(quotient) : "x"(a), "x"(b));
    relative = _mm256_add_pd(relative, quotient);
    __asm__("" : "+x"(signal), "+x"(error), "+x"(relative));
  }
};

// What 8 values are, and what their codes decode to, as masks; and of 32.
struct classes8 {
  __m256i not_finite, clipped, flushed, poisoned, compared;
};
template <class F, bool Divides>
OCTET_ROW_INLINE classes8 classes_of(__m256i a, __m256i decoded, const moderate_scale<F, Divides>& scaled) {
  constexpr int most = static_cast<int>(octet::detail::overflow_bits<F>()) - 1;
  constexpr int huge = (80 + 127) << 23;  // 2^80: divided by 2^40 it still overflows
  const __m256i zero = _mm256_setzero_si256(), limit = _mm256_set1_epi32(infinity);
  const __m256i b = _mm256_and_si256(decoded, _mm256_set1_epi32(magnitude_bits));
  const __m256i nonzero = _mm256_cmpgt_epi32(a, zero), finite = _mm256_cmpgt_epi32(limit, a);
  const __m256i decoded_finite = _mm256_cmpgt_epi32(limit, b);
  const __m256i over =
      _mm256_cmpgt_epi32(scaled(_mm256_min_epi32(a, _mm256_set1_epi32(huge))), _mm256_set1_epi32(most));
  return {_mm256_xor_si256(finite, _mm256_set1_epi32(-1)), _mm256_and_si256(finite, over),
          _mm256_and_si256(nonzero, _mm256_cmpeq_epi32(b, zero)), _mm256_andnot_si256(decoded_finite, finite),
          _mm256_and_si256(nonzero, _mm256_and_si256(finite, decoded_finite))};
}
OCTET_ROW_INLINE std::size_t count_of(__m256i a, __m256i b, __m256i c, __m256i d) {
  const int lanes = _mm256_movemask_epi8(pack_signs({{a, b, c, d}}));
  return static_cast<std::size_t>(__builtin_popcount(static_cast<unsigned>(lanes)));
}

// Whether one of 32 magnitudes is subnormal. Less one they are the least of all as unsigned integers, and zero the
// largest.
OCTET_ROW_INLINE bool has_subnormal(const words32& a) {
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i b = _mm256_min_epu32(_mm256_sub_epi32(a.at[0], one), _mm256_sub_epi32(a.at[1], one));
  const __m256i c = _mm256_min_epu32(_mm256_sub_epi32(a.at[2], one), _mm256_sub_epi32(a.at[3], one));
  const __m256i least = _mm256_min_epu32(b, c), normal = _mm256_set1_epi32(0x007FFFFF);
  return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(least, normal), least)) != -1;
}

OCTET_ROW_INLINE void add8(loss_sums& low, loss_sums& high, __m256i x, __m256i decoded, __m256i compared) {
  const __m256i value = _mm256_and_si256(x, compared), result = _mm256_and_si256(decoded, compared);
  low.add4(_mm256_castsi256_si128(value), _mm256_castsi256_si128(result));
  high.add4(_mm256_extracti128_si256(value, 1), _mm256_extracti128_si256(result, 1));
}

// 32 elements, the first of them of lane 0; false, and nothing done, where a value is subnormal, which widening could
// flush.
template <class F, bool Divides, class T>
OCTET_ROW_INLINE bool measure32(const T* in, const F* codes, __m256 d, __m256 r, row_losses& losses, loss_sums& low,
                                loss_sums& high) {
  const words32 x = words_in_order(in), a = magnitudes32(x);
  if (has_subnormal(a)) return false;
  const floats32 c = decode32(codes);
  const moderate_scale<F, Divides> s(d, r);
  const __m256i y0 = _mm256_castps_si256(_mm256_mul_ps(c.at[0], d));
  const __m256i y1 = _mm256_castps_si256(_mm256_mul_ps(c.at[1], d));
  const __m256i y2 = _mm256_castps_si256(_mm256_mul_ps(c.at[2], d));
  const __m256i y3 = _mm256_castps_si256(_mm256_mul_ps(c.at[3], d));
  const classes8 k0 = classes_of<F, Divides>(a.at[0], y0, s), k1 = classes_of<F, Divides>(a.at[1], y1, s);
  const classes8 k2 = classes_of<F, Divides>(a.at[2], y2, s), k3 = classes_of<F, Divides>(a.at[3], y3, s);
  losses.not_finite += count_of(k0.not_finite, k1.not_finite, k2.not_finite, k3.not_finite);
  losses.clipped += count_of(k0.clipped, k1.clipped, k2.clipped, k3.clipped);
  losses.flushed += count_of(k0.flushed, k1.flushed, k2.flushed, k3.flushed);
  losses.poisoned += count_of(k0.poisoned, k1.poisoned, k2.poisoned, k3.poisoned);
  losses.compared += count_of(k0.compared, k1.compared, k2.compared, k3.compared);
  add8(low, high, x.at[0], y0, k0.compared);
  add8(low, high, x.at[1], y1, k1.compared);
  add8(low, high, x.at[2], y2, k2.compared);
  add8(low, high, x.at[3], y3, k3.compared);
  return true;
}

// Elements 0, 8, 16, ... of these are of lane 0. The last ones go through buffers whose zeros count for nothing.
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void measure_all(const T* in, const F* codes, std::size_t n, group_scale s, row_losses& losses) {
  const __m256 d = _mm256_set1_ps(s.stored.value()), r = _mm256_set1_ps(s.multiplier.value());
  loss_sums low(losses, 0), high(losses, 4);
  for (std::size_t i = 0; i < n; i += 32) {
    const std::size_t count = n - i < 32 ? n - i : 32;
    bool measured = false;
    if (count == 32) {
      measured = measure32<F, Divides>(in + i, codes + i, d, r, losses, low, high);
    } else {
      exact::bits_of<T> values[32] = {};
      std::uint8_t bytes[32] = {};
      std::memcpy(values, in + i, count * sizeof(T));
      std::memcpy(bytes, codes + i, count);
      measured = measure32<F, Divides>(reinterpret_cast<const T*>(values), reinterpret_cast<const F*>(bytes), d, r,
                                       losses, low, high);
    }
    if (measured) continue;
    low.store_at(losses, 0);
    high.store_at(losses, 4);
    scalar::measure(in + i, codes + i, count, 0, s, losses);
    low = loss_sums(losses, 0);
    high = loss_sums(losses, 4);
  }
  low.store_at(losses, 0);
  high.store_at(losses, 4);
}

template <class F, class T>
OCTET_ROW void measure(const T* in, const F* codes, std::size_t n, std::size_t first, group_scale s, row_losses& sums) {
  if constexpr (is_vector_source<T> && is_moderate_format<F> && words_of<F, float>.exact) {
    if (is_moderate(s) && scalar::rounds_to_nearest()) {
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

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
