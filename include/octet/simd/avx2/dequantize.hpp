// Dequantizing in the AVX2 row: products of decoded values and descales, rounded once.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include "../scalar.hpp"
#include "decode.hpp"
#include "memory.hpp"
#include "scale.hpp"
#include "walk.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx2 {

// The products of 8 decoded values c with descales (for 16 bits moderate ones) as floats that store_narrow rounds no
// more, or, to float16, rounds rightly; where additions round to nearest.
//
// To bfloat16: p is c d rounded to float, which may reach the power of two above, and 2^e the power of two at or below
// it. A fused multiply-add to A = 2^(e + 16), whose spacing is 2^(e - 7), rounds c d itself to the bfloat16 spacing of
// p's binade (where p is the power of two above, c d is so near it that the wider spacing gives that power too): the
// sum's low bits count r units, 128 <= r <= 256. The upper half of 2^e is 128 units too large for r: planted in A's low
// 16 bits is -128, even, so ties stay ties to even. Zero, infinity and NaN stay p.
// To float16: rounded to odd. The remainder c d - p, exact in a normal float, says whether p is inexact, and whether it
// lies beyond: then the float below in magnitude is toward zero. With the last bit set where something was cut off, it
// rounds to nearest as c d does, since a float has more than two bits more.
// The empty statement hides from a compiler that may rearrange sums where p comes from.
template <class F, class T>
OCTET_ROW_INLINE __m256 product8(__m256 c, __m256 d) {
  __m256 p = _mm256_mul_ps(c, d);
  if constexpr (std::is_same_v<T, float>) return p;
  __asm__("" : "+x"(p));
  const __m256i bits = _mm256_castps_si256(p), a = _mm256_and_si256(bits, _mm256_set1_epi32(magnitude_bits));
  if constexpr (is_bfloat16<T>) {
    const __m256i power = _mm256_and_si256(bits, _mm256_set1_epi32(infinity | sign_bit));
    const __m256i addend = _mm256_add_epi32(power, _mm256_set1_epi32((16 << 23) + 0xFF80));
    const __m256i sum = _mm256_castps_si256(_mm256_fmadd_ps(c, d, _mm256_castsi256_ps(addend)));
    const __m256i rounded = _mm256_add_epi32(power, _mm256_slli_epi32(sum, 16));
    // Moved up by 2^23, zero is below the other numbers, and infinity and NaN are negative.
    const __m256i moved = _mm256_add_epi32(a, _mm256_set1_epi32(0x00800000));
    const __m256i number = _mm256_cmpgt_epi32(moved, _mm256_set1_epi32(0x00FFFFFF));
    return _mm256_castsi256_ps(_mm256_blendv_epi8(bits, rounded, number));
  } else {
    const __m256i rest = _mm256_castps_si256(_mm256_fmsub_ps(c, d, p));
    __m256i keeps = _mm256_cmpeq_epi32(rest, _mm256_setzero_si256());
    if constexpr (F::has_infinity) keeps = _mm256_or_si256(keeps, _mm256_cmpeq_epi32(a, _mm256_set1_epi32(infinity)));
    const __m256i beyond = _mm256_andnot_si256(keeps, _mm256_srai_epi32(_mm256_xor_si256(rest, bits), 31));
    const __m256i odd = _mm256_andnot_si256(keeps, _mm256_set1_epi32(1));
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_add_epi32(bits, beyond), odd));
  }
}
// 16 floats to 16 bits: to bfloat16 the upper halves, which hold all of every value; to float16 rounded by the
// instruction, to nearest even.
template <bool Streams, class T>
OCTET_ROW_INLINE void store_narrow(T* out, __m256 a, __m256 b) {
  if constexpr (is_bfloat16<T>) {
    const __m256i upper = _mm256_packus_epi32(_mm256_srli_epi32(_mm256_castps_si256(a), 16),
                                              _mm256_srli_epi32(_mm256_castps_si256(b), 16));
    store<Streams>(out, _mm256_permute4x64_epi64(upper, 0b11011000));
  } else {
    const __m128i low = _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT),
                  high = _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT);
    store<Streams>(out, _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
  }
}
// The products of 32 decoded values with their descales.
template <class F, bool Streams, class T>
OCTET_ROW_INLINE void store_products(T* out, const floats32& c, const floats32& d) {
  const floats32 p = {{product8<F, T>(c.at[0], d.at[0]), product8<F, T>(c.at[1], d.at[1]),
                       product8<F, T>(c.at[2], d.at[2]), product8<F, T>(c.at[3], d.at[3])}};
  if constexpr (sizeof(T) == 4) {
    store_floats<Streams>(out, p);
  } else {
    store_narrow<Streams>(out, p.at[0], p.at[1]);
    store_narrow<Streams>(out + 16, p.at[2], p.at[3]);
  }
}

// Whether the vectors dequantize to T, and the descales they take.
template <class F, class T>
inline constexpr bool dequantizes = words_of<F, float>.exact &&
                                    (std::is_same_v<T, float> || (is_vector_source<T> && is_moderate_format<F>));
template <class F, class T>
inline constexpr float_range descales_for = sizeof(T) == 4 ? normal_descales<F> : moderate;

template <class F, class T>
struct dequantizing {
  const F* in;
  T* out;
  __m256 d;

  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    const __m256i codes = load_codes<float>(in + i);
    store_products<F, false>(out + i, to_floats(look_up<F, float>(codes)), floats32{{d, d, d, d}});
    return !any(special_codes<F>(codes));
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i) const {
    store_products<F, Streams>(out + i, decode32(in + i), floats32{{d, d, d, d}});
  }
};

template <class F, class T>
OCTET_ROW void dequantize(const F* in, T* out, std::size_t n, descale d, bool streams) {
  if constexpr (dequantizes<F, T>) {
    if (n != 0 && descales_for<F, T>.holds(d.value()) && scalar::rounds_to_nearest())
      return walk(dequantizing<F, T>{in, out, _mm256_set1_ps(d.value())}, n, streams);
  }
  scalar::dequantize(in, out, n, d, streams);
}

template <class F, class T>
OCTET_ROW void dequantize_each(const F* in, T* out, std::size_t n, const descale* d) {
  if constexpr (dequantizes<F, T>) {
    if (n >= 32 && scalar::rounds_to_nearest()) {
      for (std::size_t i = 0;; i = i + 64 <= n ? i + 32 : n - 32) {
        const floats32 factors = load_floats(as_floats(d + i));
        if (within32(factors, descales_for<F, T>))
          store_products<F, false>(out + i, decode32(in + i), factors);
        else
          scalar::dequantize_each(in + i, out + i, 32, d + i);
        if (i + 32 == n) return;
      }
    }
  }
  scalar::dequantize_each(in, out, n, d);
}

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
