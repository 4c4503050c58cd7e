// Dequantizing in the AVX-512 row: products of decoded values and descales, rounded once.
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
namespace avx512 {

template <class F>
struct dequantizing {
  const F* in;
  float* out;
  floats64 d;

  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    const __m512i v = load_codes(in + i, for_dwords);
    store_floats<false>(out + i, times(to_floats(look_up<F, float>(v)), d));
    return nan_lanes<F>(v) == 0;
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i, span64 s) const {
    store_floats<Streams>(out + i, times(decode64(in + i, s), d), s);
  }
};

// The products of 16 decoded values c with moderate descales, rounded once to 16 bits.
//
// To bfloat16: p is c d rounded to float, which may reach the power of two above, and 2^e the power of two at or below
// it. A fused multiply-add to A = 2^(e + 16), whose spacing is 2^(e - 7), rounds c d itself to the bfloat16 spacing of
// p's binade (where p is the power of two above, c d is so near it that the wider spacing gives that power too): the
// sum's low bits count r units, 128 <= r <= 256. The upper half of 2^e is 128 units too large for r: planted in A's low
// 16 bits is -128, even, so ties stay ties to even.
// To float16: rounded to odd (toward zero, and the last bit set where something was cut off) and then to nearest, which
// is one rounding, since a float has more than two bits more. The product and its remainder are normal floats.
template <class F, class T>
OCTET_ROW_INLINE __m256i product16(__m512 c, __m512 d) {
  if constexpr (is_bfloat16<T>) {
    const __m512i p = _mm512_castps_si512(_mm512_mul_round_ps(c, d, nearest));
    const __m512i power = _mm512_and_si512(p, _mm512_set1_epi32(static_cast<int>(0xFF800000)));
    const __m512i addend = _mm512_add_epi32(power, _mm512_set1_epi32((16 << 23) + 0xFF80));
    const __m512i sum = _mm512_castps_si512(_mm512_fmadd_round_ps(c, d, _mm512_castsi512_ps(addend), nearest));
    const __mmask16 special = _mm512_fpclass_ps_mask(_mm512_castsi512_ps(p), 0x9F);  // zero, infinity and NaN
    const __m512i words = _mm512_add_epi32(sum, _mm512_srli_epi32(power, 16));
    return _mm512_cvtepi32_epi16(_mm512_mask_srli_epi32(words, special, p, 16));
  } else {
    const __m512 p = _mm512_mul_round_ps(c, d, truncate);
    const __m512i rest = _mm512_castps_si512(_mm512_fmsub_round_ps(c, d, p, truncate));
    __mmask16 inexact = _mm512_test_epi32_mask(rest, _mm512_set1_epi32(0x7FFFFFFF));
    if constexpr (F::has_infinity) inexact = _kandn_mask16(_mm512_fpclass_ps_mask(p, 0x18), inexact);
    const __m512i bits = _mm512_castps_si512(p);
    const __m512i odd = _mm512_mask_or_epi32(bits, inexact, bits, _mm512_set1_epi32(1));
    return _mm512_cvtps_ph(_mm512_castsi512_ps(odd), nearest);
  }
}

template <class F, class T>
OCTET_ROW_INLINE void dequantize64(const F* in, T* out, const floats64& d, span64 s) {
  const floats64 c = decode64(in, s);
  if constexpr (sizeof(T) == 4) {
    store_floats<false>(out, times(c, d), s);
  } else {
    _mm256_mask_storeu_epi16(out, s.part(0), product16<F, T>(c.at[0], d.at[0]));
    _mm256_mask_storeu_epi16(out + 16, s.part(1), product16<F, T>(c.at[1], d.at[1]));
    _mm256_mask_storeu_epi16(out + 32, s.part(2), product16<F, T>(c.at[2], d.at[2]));
    _mm256_mask_storeu_epi16(out + 48, s.part(3), product16<F, T>(c.at[3], d.at[3]));
  }
}

// A run that one descale is for, by multiplication.
template <class F, class T>
OCTET_ROW_INLINE void dequantize_run(const F* in, T* out, std::size_t n, float factor) {
  for (std::size_t i = 0; i < n; i += 64) dequantize64(in + i, out + i, all64(factor), span64(n - i));
}

// A long run to 16 bits: the results of all codes of 7 bits first, and then each is looked up, as decode does it; a
// format of 8 bits has its sign above, which rounding to nearest keeps.
struct first_codes {
  alignas(64) std::uint8_t at[128];
  OCTET_HOST_INLINE constexpr first_codes() : at() {
    for (unsigned i = 0; i < 128; ++i) at[i] = static_cast<std::uint8_t>(i);
  }
};
static constexpr first_codes codes_of_7_bits{};

template <class F, class T>
struct looking_up {
  const F* in;
  T* out;
  byte_vectors from;

  OCTET_ROW_INLINE looking_up(const F* codes, T* to, const T (&all)[128]) : in(codes), out(to) {
    const __m512i numbers = _mm512_load_si512(codes_of_7_bits.at);
    const __m512i even = _mm512_add_epi8(numbers, numbers), odd = _mm512_add_epi8(even, _mm512_set1_epi8(1));
    const __m512i a = _mm512_loadu_si512(all), b = _mm512_loadu_si512(all + 32);
    const __m512i c = _mm512_loadu_si512(all + 64), d = _mm512_loadu_si512(all + 96);
    from = vectors_of(_mm512_permutex2var_epi8(a, even, b), _mm512_permutex2var_epi8(c, even, d),
                      _mm512_permutex2var_epi8(a, odd, b), _mm512_permutex2var_epi8(c, odd, d));
  }
  OCTET_ROW_INLINE two_bytes results(__m512i v) const {
    const two_bytes b = look_up<F, false>(from, v);
    if constexpr (F::width == 8) return with_nan_bytes(b, nan_lanes<F>(v));
    return b;
  }
  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    const two_bytes b = results(load_codes(in + i, for_words));
    store64<false>(out + i, _mm512_unpacklo_epi8(b.low, b.high));
    store64<false>(out + i + 32, _mm512_unpackhi_epi8(b.low, b.high));
    return true;
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i, span64 s) const {
    const two_bytes b = results(load_codes(in + i, s, for_words));
    store_words<Streams>(out + i, _mm512_unpacklo_epi8(b.low, b.high), _mm512_unpackhi_epi8(b.low, b.high), s);
  }
};
inline constexpr std::size_t long_run = 256;

template <class F, class T>
OCTET_ROW void dequantize(const F* in, T* out, std::size_t n, descale d, bool streams) {
  if constexpr (std::is_same_v<T, float>) {
    if (normal_descales<F>.holds(d.value())) return walk(dequantizing<F>{in, out, all64(d.value())}, n, streams);
  } else if constexpr (is_vector_source<T>) {
    const bool multiplies = is_moderate_format<F> && is_moderate(d.value());
    if (n >= long_run && octet::detail::is_usable_scale(d.value())) {
      const F* codes = reinterpret_cast<const F*>(codes_of_7_bits.at);
      T results[128];
      if (multiplies)
        dequantize_run(codes, results, 128, d.value());
      else
        scalar::dequantize(codes, results, 128, d, false);
      return walk(looking_up<F, T>(in, out, results), n, streams);
    }
    if (multiplies) return dequantize_run(in, out, n, d.value());
  }
  scalar::dequantize(in, out, n, d, streams);
}

template <class F, class T>
OCTET_ROW void dequantize_each(const F* in, T* out, std::size_t n, const descale* d) {
  if constexpr (!is_vector_source<T> || (sizeof(T) == 2 && !is_moderate_format<F>)) {
    scalar::dequantize_each(in, out, n, d);
  } else {
    constexpr float_range range = sizeof(T) == 2 ? moderate : normal_descales<F>;
    for (std::size_t i = 0; i < n; i += 64) {
      const span64 s(n - i);
      const floats64 factors = load64(as_floats(d + i), s);
      if (within64(factors, range, s))
        dequantize64(in + i, out + i, factors, s);
      else
        scalar::dequantize_each(in + i, out + i, n - i < 64 ? n - i : 64, d + i);
    }
  }
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
