// The row of x86-64 machines with AVX2, FMA and F16C: Haswell, Zen and later.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_X86_64
#include <immintrin.h>

#include <utility>  // std::index_sequence

#include "scalar.hpp"

// The target of this row, and the two kinds of functions it holds.
#define OCTET_TARGET __attribute__((target("avx2,fma,f16c")))
#define OCTET_ROW_INLINE OCTET_TARGET __attribute__((always_inline)) inline
#define OCTET_ROW [[maybe_unused]] OCTET_TARGET static

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx2 {

// Rounding follows the control register here: what must round to nearest even asks scalar::rounds_to_nearest() once a
// call, and is left to the scalar row otherwise. Magnitudes are clamped and compared as integers, of which neither a
// flush-to-zero mode nor -ffast-math knows.
inline constexpr int sign_bit = static_cast<int>(0x80000000), magnitude_bits = 0x7FFFFFFF, infinity = 0x7F800000;

// -- Memory ---------------------------------------------------------------------------------------------------------

// A run that is no multiple of a block ends with a block that overlaps the one before: input and output are apart, so
// the same bytes are written twice. A run shorter than a block goes through a buffer.
OCTET_ROW_INLINE __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
OCTET_ROW_INLINE __m128i load_half(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
OCTET_ROW_INLINE void store(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }

// The bits of 8 values as floats. F16C widens subnormals whatever the control register says.
template <class T>
OCTET_ROW_INLINE __m256i load8(const T* x) {
  if constexpr (std::is_same_v<T, float>)
    return load(x);
  else if constexpr (is_bfloat16<T>)
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half(x)), 16);
  else
    return _mm256_castps_si256(_mm256_cvtph_ps(load_half(x)));
}

// Written out four times wherever they are made: at -O2 g++ leaves a loop of four a loop, and its array in memory.
struct words32 {
  __m256i at[4];
};
template <class T>
OCTET_ROW_INLINE words32 load32(const T* x) {
  return {{load8(x), load8(x + 8), load8(x + 16), load8(x + 24)}};
}
OCTET_ROW_INLINE words32 and32(const words32& w, __m256i mask) {
  return {{_mm256_and_si256(w.at[0], mask), _mm256_and_si256(w.at[1], mask), _mm256_and_si256(w.at[2], mask),
           _mm256_and_si256(w.at[3], mask)}};
}
OCTET_ROW_INLINE words32 magnitudes32(const words32& w) { return and32(w, _mm256_set1_epi32(magnitude_bits)); }

// Negative where the word is above `limit`.
OCTET_ROW_INLINE words32 above32(const words32& w, int limit) {
  const __m256i most = _mm256_set1_epi32(limit);
  return {{_mm256_sub_epi32(most, w.at[0]), _mm256_sub_epi32(most, w.at[1]), _mm256_sub_epi32(most, w.at[2]),
           _mm256_sub_epi32(most, w.at[3])}};
}

// Bytes of 32 words, in the order that `in_order` undoes: of words from 0 to 255, and of the signs of any words.
OCTET_ROW_INLINE __m256i pack(const words32& w) {
  return _mm256_packus_epi16(_mm256_packus_epi32(w.at[0], w.at[1]), _mm256_packus_epi32(w.at[2], w.at[3]));
}
OCTET_ROW_INLINE __m256i pack_signs(const words32& w) {
  return _mm256_packs_epi16(_mm256_packs_epi32(w.at[0], w.at[1]), _mm256_packs_epi32(w.at[2], w.at[3]));
}
OCTET_ROW_INLINE __m256i in_order(__m256i bytes) {
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// -- Encoding -------------------------------------------------------------------------------------------------------

// The codes of 8 magnitudes, as scalar::nearest_code has them, where float additions round to nearest even. The
// addend's low mantissa bits are zero, so the low 7 bits of the sum are r; the code's part that the least exponent
// takes away, least >> up, is an even number of units, and is planted in the addend instead of subtracted afterwards.
// Nothing but bits of the sum is used, and its terms come from integers, so a compiler has no sum to rearrange.
template <class F>
OCTET_ROW_INLINE __m256i magnitudes8(__m256i a) {
  constexpr int up = float_traits<float>::mantissa_bits - F::mantissa_bits;
  constexpr std::uint32_t least = static_cast<std::uint32_t>(F::least_exponent + 127) << 23;
  constexpr std::uint32_t planted = (static_cast<std::uint32_t>(up) << 23) + ((0u - (least >> up)) & 0x7F);
  constexpr int largest = static_cast<int>(octet::detail::decode_bits(F::from_bits(F::max_code)));
  const __m256i clamped = _mm256_min_epi32(a, _mm256_set1_epi32(largest));
  const __m256i above = _mm256_max_epi32(clamped, _mm256_set1_epi32(static_cast<int>(least)));
  const __m256i m = _mm256_and_si256(above, _mm256_set1_epi32(infinity));
  const __m256i addend = _mm256_add_epi32(m, _mm256_set1_epi32(static_cast<int>(planted)));
  const __m256i sum = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(clamped), _mm256_castsi256_ps(addend)));
  const __m256i code = _mm256_add_epi32(sum, _mm256_srli_epi32(m, up));
  return _mm256_and_si256(code, _mm256_set1_epi32(F::magnitude_mask));
}

// The codes of 32 floats x, whose magnitudes, scaled or not, are a.
template <class F, bool Saturates>
OCTET_ROW_INLINE __m256i codes32(const words32& x, const words32& a) {
  const words32 magnitudes = {
      {magnitudes8<F>(a.at[0]), magnitudes8<F>(a.at[1]), magnitudes8<F>(a.at[2]), magnitudes8<F>(a.at[3])}};
  const __m256i packed = pack(magnitudes);
  __m256i sign = _mm256_and_si256(pack_signs(x), _mm256_set1_epi8(static_cast<char>(0x80)));
  if constexpr (F::width < 8) sign = _mm256_srli_epi16(sign, 8 - F::width);
  __m256i code = _mm256_or_si256(packed, sign);
  if constexpr (!F::has_negative_zero)
    code = _mm256_andnot_si256(_mm256_cmpeq_epi8(packed, _mm256_setzero_si256()), code);
  if constexpr (!Saturates && F::has_nan) {
    constexpr int most = static_cast<int>(octet::detail::overflow_bits<F>()) - 1;
    constexpr int beyond = F::has_infinity ? F::infinity_code : F::nan_code;
    const __m256i outside = _mm256_or_si256(sign, _mm256_set1_epi8(static_cast<char>(beyond)));
    code = _mm256_blendv_epi8(code, outside, pack_signs(above32(a, most)));
  }
  code = _mm256_blendv_epi8(code, _mm256_set1_epi8(static_cast<char>(F::nan_code)),
                            pack_signs(above32(magnitudes32(x), infinity)));
  return in_order(code);
}

// E8M0, upward: the exponent field, plus one where there is a mantissa. Subnormals above 2^-127 are code 1.
template <bool Saturates>
OCTET_ROW_INLINE __m256i exponents8(__m256i a) {
  const __m256i up = _mm256_srli_epi32(_mm256_add_epi32(a, _mm256_set1_epi32(0x007FFFFF)), 23);
  const __m256i code = _mm256_and_si256(_mm256_cmpgt_epi32(a, _mm256_set1_epi32(0x00400000)), up);
  const __m256i nan = _mm256_srli_epi32(_mm256_cmpgt_epi32(a, _mm256_set1_epi32(infinity)), 24);
  return _mm256_or_si256(_mm256_min_epi32(code, _mm256_set1_epi32(Saturates ? 0xFE : 0xFF)), nan);
}
template <bool Saturates>
OCTET_ROW_INLINE __m256i exponents32(const words32& a) {
  return in_order(pack({{exponents8<Saturates>(a.at[0]), exponents8<Saturates>(a.at[1]), exponents8<Saturates>(a.at[2]),
                         exponents8<Saturates>(a.at[3])}}));
}

template <class F, bool Saturates, class T>
OCTET_ROW_INLINE void encode32(const T* in, F* out) {
  const words32 x = load32(in), a = magnitudes32(x);
  if constexpr (F::is_signed)
    store(out, codes32<F, Saturates>(x, a));
  else
    store(out, exponents32<Saturates>(a));
}

template <class F, bool Saturates, class T>
OCTET_ROW_INLINE void encode_all(const T* in, F* out, std::size_t n) {
  if (n < 32) {
    exact::bits_of<T> values[32] = {};
    F codes[32];
    std::memcpy(values, in, n * sizeof(T));
    encode32<F, Saturates>(reinterpret_cast<const T*>(values), codes);
    std::memcpy(out, codes, n);
    return;
  }
  for (std::size_t i = 0; i + 32 <= n; i += 32) encode32<F, Saturates>(in + i, out + i);
  if (n % 32 != 0) encode32<F, Saturates>(in + n - 32, out + n - 32);
}

template <class F, class T>
OCTET_ROW void encode(const T* in, F* out, std::size_t n, overflow o) {
  if constexpr (!is_vector_source<T>) {
    scalar::encode(in, out, n, o);
  } else {
    if (n == 0) return;
    if (F::is_signed && !scalar::rounds_to_nearest())
      scalar::encode(in, out, n, o);
    else if (o == overflow::saturate)
      encode_all<F, true>(in, out, n);
    else
      encode_all<F, false>(in, out, n);
  }
}

// -- Decoding -------------------------------------------------------------------------------------------------------

struct floats16 {
  __m256 at[2];
};

// Formats whose codes, moved up, are halves of another bias: F16C widens them, subnormals too, and a power of two sets
// the bias right. A fifth exponent bit leaves room for IEEE's special codes only.
template <class F>
inline constexpr bool is_like_half = F::exponent_bits < 5 ||
                                     (F::exponent_bits == 5 && F::special_codes == encoding::ieee);

template <class F>
OCTET_ROW_INLINE __m256 rebiased(__m256 x) {
  constexpr float rebias = bit_cast<float>(static_cast<std::uint32_t>(127 + 15 - F::bias) << 23);
  if constexpr (F::bias != 15) x = _mm256_mul_ps(x, _mm256_set1_ps(rebias));
  if constexpr (F::has_nan) {  // 7FFFFFFF: the NaN has no sign, so a signed comparison finds it
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i nan = _mm256_cmpgt_epi32(bits, _mm256_set1_epi32(infinity));
    x = _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_srli_epi32(nan, 1)));
  }
  return x;
}

template <class F>
OCTET_ROW_INLINE __m256i halves16(const F* in) {
  constexpr int up = 10 - F::mantissa_bits;
  constexpr int code_bits = F::magnitude_mask | F::sign_mask;
  const __m256i w = _mm256_and_si256(_mm256_cvtepu8_epi16(load_half(in)), _mm256_set1_epi16(code_bits));
  const __m256i a = _mm256_and_si256(w, _mm256_set1_epi16(F::magnitude_mask));
  const __m256i sign = _mm256_and_si256(_mm256_slli_epi16(w, 16 - F::width), _mm256_set1_epi16(-0x8000));
  __m256i half = _mm256_slli_epi16(a, up);
  if constexpr (F::has_infinity && F::exponent_bits < 5)
    half =
        _mm256_blendv_epi8(half, _mm256_set1_epi16(0x7C00), _mm256_cmpeq_epi16(a, _mm256_set1_epi16(F::infinity_code)));
  half = _mm256_or_si256(half, sign);
  if constexpr (F::has_nan) {
    const __m256i nan = F::has_negative_zero ? _mm256_cmpgt_epi16(a, _mm256_set1_epi16(F::infinity_code))
                                             : _mm256_cmpeq_epi16(w, _mm256_set1_epi16(F::sign_mask));
    half = _mm256_blendv_epi8(half, _mm256_set1_epi16(0x7FFF), nan);
  }
  return half;
}

// Every other format, as octet::detail::decode_bits has it.
template <class F>
OCTET_ROW_INLINE __m256 decode8(__m256i w) {
  constexpr int up = float_traits<float>::mantissa_bits - F::mantissa_bits;
  constexpr int rebias = (127 - F::bias) * (1 << 23);
  constexpr float spacing =
      bit_cast<float>(static_cast<std::uint32_t>(F::least_exponent - F::mantissa_bits + 127) << 23);
  const __m256i a = _mm256_and_si256(w, _mm256_set1_epi32(F::magnitude_mask));
  const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(w, 32 - F::width), _mm256_set1_epi32(sign_bit));
  const __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(a, up), _mm256_set1_epi32(rebias));
  const __m256i subnormal = _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtepi32_ps(a), _mm256_set1_ps(spacing)));
  __m256i bits = _mm256_blendv_epi8(normal, subnormal, _mm256_cmpgt_epi32(_mm256_set1_epi32(1 << F::mantissa_bits), a));
  if constexpr (F::has_infinity)
    bits = _mm256_blendv_epi8(bits, _mm256_set1_epi32(infinity),
                              _mm256_cmpeq_epi32(a, _mm256_set1_epi32(F::infinity_code)));
  bits = _mm256_or_si256(bits, sign);
  if constexpr (F::has_nan) {
    const __m256i code = _mm256_and_si256(w, _mm256_set1_epi32(F::magnitude_mask | F::sign_mask));
    const __m256i nan = F::has_negative_zero ? _mm256_cmpgt_epi32(a, _mm256_set1_epi32(F::infinity_code))
                                             : _mm256_cmpeq_epi32(code, _mm256_set1_epi32(F::sign_mask));
    bits = _mm256_blendv_epi8(bits, _mm256_set1_epi32(magnitude_bits), nan);
  }
  return _mm256_castsi256_ps(bits);
}

template <class F>
OCTET_ROW_INLINE floats16 decode16(const F* in) {
  if constexpr (is_like_half<F>) {
    const __m256i half = halves16(in);
    return {{rebiased<F>(_mm256_cvtph_ps(_mm256_castsi256_si128(half))),
             rebiased<F>(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)))}};
  } else {
    const __m128i codes = load_half(in);
    return {{decode8<F>(_mm256_cvtepu8_epi32(codes)), decode8<F>(_mm256_cvtepu8_epi32(_mm_srli_si128(codes, 8)))}};
  }
}

// To bfloat16 the upper halves, which hold all of every value; to float16 rounded by the instruction, to nearest even.
template <class T>
OCTET_ROW_INLINE void store16(T* out, const floats16& x) {
  if constexpr (std::is_same_v<T, float>) {
    _mm256_storeu_ps(out, x.at[0]);
    _mm256_storeu_ps(out + 8, x.at[1]);
  } else if constexpr (is_bfloat16<T>) {
    const __m256i upper = _mm256_packus_epi32(_mm256_srli_epi32(_mm256_castps_si256(x.at[0]), 16),
                                              _mm256_srli_epi32(_mm256_castps_si256(x.at[1]), 16));
    store(out, _mm256_permute4x64_epi64(upper, 0b11011000));
  } else {
    const __m128i low = _mm256_cvtps_ph(x.at[0], _MM_FROUND_TO_NEAREST_INT);
    const __m128i high = _mm256_cvtps_ph(x.at[1], _MM_FROUND_TO_NEAREST_INT);
    store(out, _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
  }
}

template <class F, class T>
OCTET_ROW_INLINE void decode_to(const F* in, T* out) {
  if constexpr (is_float16<T> && is_like_half<F> && F::bias == 15)
    store(out, halves16(in));
  else
    store16(out, decode16(in));
}

template <class F, class T>
OCTET_ROW void decode(const F* in, T* out, std::size_t n) {
  if constexpr (!F::is_signed || !is_vector_source<T>) {
    scalar::decode(in, out, n);
  } else {
    if (n < 16) return scalar::decode(in, out, n);
    for (std::size_t i = 0; i + 16 <= n; i += 16) decode_to(in + i, out + i);
    if (n % 16 != 0) decode_to(in + n - 16, out + n - 16);
  }
}

// -- Reduction ------------------------------------------------------------------------------------------------------

// Magnitudes of 8 floats or of 16 16-bit floats, and their maximum; positive as signed integers.
template <class T>
OCTET_ROW_INLINE __m256i magnitudes(const T* x) {
  if constexpr (sizeof(T) == 4)
    return _mm256_and_si256(load(x), _mm256_set1_epi32(magnitude_bits));
  else
    return _mm256_and_si256(load(x), _mm256_set1_epi16(0x7FFF));
}
template <class T>
OCTET_ROW_INLINE __m256i larger(__m256i a, __m256i b) {
  if constexpr (sizeof(T) == 4)
    return _mm256_max_epi32(a, b);
  else
    return _mm256_max_epi16(a, b);
}

template <class T>
OCTET_ROW exact::bits_of<T> amax(const T* in, std::size_t n) {
  constexpr std::size_t lanes = 32 / sizeof(T);
  if constexpr (!is_vector_source<T>) {
    return scalar::amax(in, n);
  } else {
    if (n < lanes) return scalar::amax(in, n);
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    std::size_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      a = larger<T>(a, magnitudes(in + i));
      b = larger<T>(b, magnitudes(in + i + lanes));
      c = larger<T>(c, magnitudes(in + i + 2 * lanes));
      d = larger<T>(d, magnitudes(in + i + 3 * lanes));
    }
    for (; i + lanes <= n; i += lanes) a = larger<T>(a, magnitudes(in + i));
    b = larger<T>(b, magnitudes(in + n - lanes));
    exact::bits_of<T> each[lanes], result = 0;
    store(each, larger<T>(larger<T>(a, b), larger<T>(c, d)));
    for (std::size_t k = 0; k < lanes; ++k) result = each[k] > result ? each[k] : result;
    return result;
  }
}

template <class T>
OCTET_ROW void amax_each(const T* in, exact::bits_of<T>* largest, std::size_t n) {
  std::size_t i = 0;
  if constexpr (is_vector_source<T>) {
    constexpr std::size_t lanes = 32 / sizeof(T);
    for (; i + lanes <= n; i += lanes) store(largest + i, larger<T>(load(largest + i), magnitudes(in + i)));
  }
  scalar::amax_each(in + i, largest + i, n - i);
}

// -- Scaled conversion ----------------------------------------------------------------------------------------------

// The floats nearest to a * r or, given d and r, the float nearest to 1 / d, to a / d. With q = a r, off by at most two
// units of the last place, a - q d is exact in a fused multiply-add and q + (a - q d) r rounds correctly (Markstein
// 1990, theorem 1: r is the correctly rounded reciprocal), if all round to nearest even. The magnitude is first brought
// between 2^-70 and 2^80 (is_moderate), so every step is normal. The empty statement hides from a compiler that may
// rearrange sums where q comes from.
template <bool Divides>
OCTET_ROW_INLINE __m256i scale8(__m256i a, __m256 d, __m256 r) {
  const __m256i least = _mm256_castps_si256(_mm256_set1_ps(0x1p-70f));
  const __m256i most = _mm256_castps_si256(_mm256_set1_ps(0x1p80f));
  const __m256 x = _mm256_castsi256_ps(_mm256_min_epi32(_mm256_max_epi32(a, least), most));
  __m256 q = _mm256_mul_ps(x, r);
  if constexpr (Divides) {
    __asm__("" : "+x"(q));
    q = _mm256_fmadd_ps(_mm256_fnmadd_ps(q, d, x), r, q);
  }
  return _mm256_castps_si256(q);
}

template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize32(const T* in, F* out, __m256 d, __m256 r) {
  const words32 x = load32(in), a = magnitudes32(x);
  const words32 scaled = {{scale8<Divides>(a.at[0], d, r), scale8<Divides>(a.at[1], d, r),
                           scale8<Divides>(a.at[2], d, r), scale8<Divides>(a.at[3], d, r)}};
  store(out, codes32<F, true>(x, scaled));
}

template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_all(const T* in, F* out, std::size_t n, float stored, float multiplier) {
  const __m256 d = _mm256_set1_ps(stored), r = _mm256_set1_ps(multiplier);
  if (n < 32) {
    exact::bits_of<T> values[32] = {};
    F codes[32];
    std::memcpy(values, in, n * sizeof(T));
    quantize32<F, Divides>(reinterpret_cast<const T*>(values), codes, d, r);
    std::memcpy(out, codes, n);
    return;
  }
  for (std::size_t i = 0; i + 32 <= n; i += 32) quantize32<F, Divides>(in + i, out + i, d, r);
  if (n % 32 != 0) quantize32<F, Divides>(in + n - 32, out + n - 32, d, r);
}

template <class F, class T>
OCTET_ROW void quantize(const T* in, F* out, std::size_t n, group_scale s) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (n == 0) return;
    if (is_moderate(s.stored.value()) && is_moderate(s.multiplier.value()) && scalar::rounds_to_nearest()) {
      if (s.divides)
        quantize_all<F, true>(in, out, n, s.stored.value(), s.multiplier.value());
      else
        quantize_all<F, false>(in, out, n, s.stored.value(), s.multiplier.value());
      return;
    }
  }
  scalar::quantize(in, out, n, s);
}

template <class F, class T>
OCTET_ROW exact::bits_of<T> quantize_and_amax(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                              std::size_t next_n) {
  avx2::quantize(in, out, n, s);
  return avx2::amax(next, next_n);
}

template <class F, class T>
OCTET_ROW void quantize_each(const T* in, F* out, std::size_t n, group_scales s) {
  scalar::quantize_each(in, out, n, s);
}

template <class F, class T>
OCTET_ROW void dequantize(const F* in, T* out, std::size_t n, descale d) {
  if constexpr (std::is_same_v<T, float> && is_moderate_format<F>) {
    if (n >= 16 && is_moderate(d.value()) && scalar::rounds_to_nearest()) {
      const __m256 factor = _mm256_set1_ps(d.value());
      for (std::size_t i = 0;; i = i + 32 <= n ? i + 16 : n - 16) {
        const floats16 x = decode16(in + i);
        store16(out + i, {{_mm256_mul_ps(x.at[0], factor), _mm256_mul_ps(x.at[1], factor)}});
        if (i + 16 == n) return;
      }
    }
  }
  scalar::dequantize(in, out, n, d);
}

template <class F, class T>
OCTET_ROW void dequantize_each(const F* in, T* out, std::size_t n, const descale* d) {
  scalar::dequantize_each(in, out, n, d);
}

template <class F, class T>
OCTET_ROW void measure(const T* in, const F* codes, std::size_t n, std::size_t first, group_scale s, row_losses& sums) {
  scalar::measure(in, codes, n, first, s, sums);
}

// -- Products -------------------------------------------------------------------------------------------------------

// Formats of 8 bits whose codes, moved up, are halves of another bias with the same finite values, infinities included:
// F16C widens them, subnormals too, whatever the control register says. A NaN code that is no NaN as a half makes every
// sum NaN that it takes part in, so it is looked for beside. The other formats are the scalar row's.
template <class F>
inline constexpr bool multiplies_halves = F::width == 8 &&
                                          ((F::exponent_bits < 5 && !F::has_infinity) ||
                                           (F::exponent_bits == 5 && F::special_codes == encoding::ieee));

// The factor between the halves and the codes: a power of two.
template <class F>
inline constexpr float half_unit = bit_cast<float>(static_cast<std::uint32_t>(127 + 15 - F::bias) << 23);

// 32 codes as floats divided by half_unit: those from 0, 8, 16 and 24 on.
struct floats_4x8 {
  __m256 at[4];
};

// The halves take the way through memory: widened from there they need neither the port of the shuffles nor an extract
// (a conversion from a register costs twice as much). The statement without an instruction hides from the compiler that
// what is loaded is what was stored, or it would save the way.
template <class F>
OCTET_ROW_INLINE floats_4x8 halves_of(__m256i codes) {
  constexpr int up = 10 - F::mantissa_bits;
  alignas(32) std::uint16_t halves[32];
  // In each 128-bit half, codes 0 to 7 become the low bytes of words, 8 to 15 the high bytes.
  const __m256i order = _mm256_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 0, 8, 1, 9, 2, 10, 3, 11,
                                         4, 12, 5, 13, 6, 14, 7, 15);
  const __m256i v = _mm256_shuffle_epi8(codes, order);
  if constexpr (up == 8) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(halves), _mm256_slli_epi16(v, 8));
    _mm256_store_si256(reinterpret_cast<__m256i*>(halves + 16), _mm256_and_si256(v, _mm256_set1_epi16(-0x100)));
  } else {  // the signed byte times 2^up, and the word divided by 2^(8 - up): the sign, copies of it, the magnitude
    const __m256i keep = _mm256_set1_epi16(static_cast<short>(0x8000 | (F::magnitude_mask << up)));
    const __m256i low = _mm256_maddubs_epi16(_mm256_set1_epi16(1 << up), v), high = _mm256_srai_epi16(v, 8 - up);
    _mm256_store_si256(reinterpret_cast<__m256i*>(halves), _mm256_and_si256(low, keep));
    _mm256_store_si256(reinterpret_cast<__m256i*>(halves + 16), _mm256_and_si256(high, keep));
  }
  __asm__("" : "+m"(halves));
  return {{_mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(halves))),
           _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(halves + 16))),
           _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(halves + 8))),
           _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(halves + 24)))}};
}

// Codes seen so far: the largest magnitudes, or the least signed bytes where NaN is 80, the only code of that kind.
template <class F>
OCTET_ROW_INLINE __m256i look_for_nan(__m256i seen, __m256i codes) {
  if constexpr (!F::has_nan || F::has_infinity)
    return seen;
  else if constexpr (F::has_negative_zero)
    return _mm256_max_epu8(seen, _mm256_and_si256(codes, _mm256_set1_epi8(0x7F)));
  else
    return _mm256_min_epi8(seen, codes);
}
template <class F>
OCTET_ROW_INLINE bool has_nan(__m256i seen) {
  if constexpr (!F::has_nan || F::has_infinity)
    return false;
  else
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(seen, _mm256_set1_epi8(static_cast<char>(F::nan_code)))) != 0;
}

OCTET_ROW_INLINE float sum_of(__m256 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Fewer than 32 codes, then zeros.
template <class F>
OCTET_ROW_INLINE __m256i load_some(const F* codes, std::size_t n) {
  alignas(32) std::uint8_t bytes[32] = {};
  std::memcpy(bytes, codes, n);
  return load(bytes);
}

// The partial sums of M columns. Few columns have several sums each, so that the next addition need not wait.
template <std::size_t M>
struct column_sums {
  static constexpr std::size_t each = M == 1 ? 4 : M <= 4 ? 2 : 1;
  __m256 at[M * each];
};

template <std::size_t M, std::size_t... Column>
OCTET_ROW_INLINE void add_products(column_sums<M>& sums, const floats_4x8& w, const float* x, std::size_t stride,
                                   std::index_sequence<Column...>) {
  constexpr std::size_t each = column_sums<M>::each;
  ((sums.at[Column * each] = _mm256_fmadd_ps(w.at[0], _mm256_load_ps(x + Column * stride), sums.at[Column * each])),
   ...);
  ((sums.at[Column * each + 1 % each] =
        _mm256_fmadd_ps(w.at[1], _mm256_load_ps(x + Column * stride + 8), sums.at[Column * each + 1 % each])),
   ...);
  ((sums.at[Column * each + 2 % each] =
        _mm256_fmadd_ps(w.at[2], _mm256_load_ps(x + Column * stride + 16), sums.at[Column * each + 2 % each])),
   ...);
  ((sums.at[Column * each + 3 % each] =
        _mm256_fmadd_ps(w.at[3], _mm256_load_ps(x + Column * stride + 24), sums.at[Column * each + 3 % each])),
   ...);
}
template <std::size_t M>
OCTET_ROW_INLINE __m256 sum_of(const column_sums<M>& sums, std::size_t column) {
  constexpr std::size_t each = column_sums<M>::each;
  const __m256* s = sums.at + column * each;
  if constexpr (each == 4)
    return _mm256_add_ps(_mm256_add_ps(s[0], s[1]), _mm256_add_ps(s[2], s[3]));
  else if constexpr (each == 2)
    return _mm256_add_ps(s[0], s[1]);
  else
    return s[0];
}

// A block is 32 codes: 5 operations give halves (2 more look for NaN), 4 widen them, 4 a column multiply; three ports,
// of which two multiply and widen. Prefetching as in the other rows of vectors: near and far, along one stream.
template <class F, std::size_t M, std::size_t... Column>
OCTET_ROW_INLINE void multiply_columns(const weights<F>& w, const activations& x, float* y, std::size_t y_stride,
                                       bool add, std::index_sequence<Column...> columns) {
  const read_ahead ahead(w.cols, w.stride);
  for (std::size_t r = 0; r < w.rows; ++r) {
    const F* codes = w.codes + r * w.stride;
    const descale* d = w.descales + w.tiles.rows.tile(r) * w.tiles_a_row;
    const float* tile_x = x.x;
    __m256 totals[M] = {};
    __m256i seen = _mm256_setzero_si256();
    for (std::size_t tile = 0, c0 = 0, c1 = 0; c0 < w.cols; tile_x += padded(c1 - c0), ++tile, c0 = c1) {
      c1 = w.tiles.cols.end(tile, w.cols);
      column_sums<M> sums = {};
      const float* at = tile_x;
      const std::size_t whole = c1 - (c1 - c0) % 32;
      std::size_t c = c0;
      while (c < whole) {
        const std::size_t near = ahead.near(c), stop = least(whole, ahead.until(c));
        for (; c < stop; c += 32, at += 32) {
          _mm_prefetch(somewhere(codes + c, near), _MM_HINT_T0);
          _mm_prefetch(somewhere(codes + c, ahead.far), _MM_HINT_T1);
          const __m256i v = load(codes + c);
          seen = look_for_nan<F>(seen, v);
          add_products(sums, halves_of<F>(v), at, x.stride, columns);
        }
      }
      if (c < c1) {
        const __m256i v = load_some(codes + c, c1 - c);
        seen = look_for_nan<F>(seen, v);
        add_products(sums, halves_of<F>(v), at, x.stride, columns);
      }
      const __m256 factor = _mm256_set1_ps(d[tile].value()), unit = _mm256_set1_ps(half_unit<F>);
      ((totals[Column] = _mm256_fmadd_ps(_mm256_mul_ps(sum_of(sums, Column), unit), factor, totals[Column])), ...);
    }
    float* out = y + r;
    ((out[Column * y_stride] = sum_of(totals[Column]) + (add ? out[Column * y_stride] : 0.0f)), ...);
    if (has_nan<F>(seen)) ((out[Column * y_stride] = bit_cast<float>(magnitude_bits)), ...);
  }
}

template <class F, std::size_t M>
OCTET_ROW void multiply_by(const weights<F>& w, const activations& x, float* y, std::size_t y_stride, bool add) {
  multiply_columns<F, M>(w, x, y, y_stride, add, std::make_index_sequence<M>{});
}
template <class F>
OCTET_ROW void multiply(const weights<F>& w, const activations& x, float* y, std::size_t y_stride, bool add) {
  if constexpr (!multiplies_halves<F>) {
    scalar::multiply(w, x, y, y_stride, add);
  } else {
    using kernel = void(const weights<F>&, const activations&, float*, std::size_t, bool);
    static constexpr kernel* by_columns[] = {&multiply_by<F, 1>, &multiply_by<F, 2>, &multiply_by<F, 3>,
                                             &multiply_by<F, 4>, &multiply_by<F, 5>, &multiply_by<F, 6>,
                                             &multiply_by<F, 7>, &multiply_by<F, 8>};
    by_columns[x.columns - 1](w, x, y, y_stride, add);
  }
}

template <class T>
OCTET_ROW void arrange(const T* x, std::size_t n, float* out) {
  scalar::arrange(x, n, out);
}

template <class F, class T>
OCTET_ROW float dot(const F* codes, const T* x, std::size_t n) {
  if constexpr (!multiplies_halves<F> || !is_vector_source<T>) {
    return scalar::dot(codes, x, n);
  } else {
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    __m256i seen = _mm256_setzero_si256();
    std::size_t i = 0;
    for (; i + 32 <= n; i += 32) {
      const __m256i v = load(codes + i);
      seen = look_for_nan<F>(seen, v);
      const floats_4x8 w = halves_of<F>(v);
      a = _mm256_fmadd_ps(w.at[0], _mm256_castsi256_ps(load8(x + i)), a);
      b = _mm256_fmadd_ps(w.at[1], _mm256_castsi256_ps(load8(x + i + 8)), b);
      c = _mm256_fmadd_ps(w.at[2], _mm256_castsi256_ps(load8(x + i + 16)), c);
      d = _mm256_fmadd_ps(w.at[3], _mm256_castsi256_ps(load8(x + i + 24)), d);
    }
    if (has_nan<F>(seen)) return bit_cast<float>(magnitude_bits);
    const float sum = sum_of(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d))) * half_unit<F>;
    return i == n ? sum : sum + scalar::dot(codes + i, x + i, n - i);
  }
}

template <class F>
OCTET_ROW void axpy(float a, const F* codes, float* y, std::size_t n) {
  std::size_t i = 0;
  if constexpr (multiplies_halves<F>) {
    const __m256 factor = _mm256_set1_ps(a), unit = _mm256_set1_ps(half_unit<F>);
    for (; i + 32 <= n; i += 32) {
      const __m256i v = load(codes + i);
      if (has_nan<F>(look_for_nan<F>(_mm256_setzero_si256(), v))) {
        scalar::axpy(a, codes + i, y + i, 32);
        continue;
      }
      const floats_4x8 w = halves_of<F>(v);
      for (int k = 0; k < 4; ++k) {
        float* out = y + i + 8 * k;
        _mm256_storeu_ps(out, _mm256_fmadd_ps(factor, _mm256_mul_ps(w.at[k], unit), _mm256_loadu_ps(out)));
      }
    }
  }
  scalar::axpy(a, codes + i, y + i, n - i);
}

// -- The line-up ----------------------------------------------------------------------------------------------------

// Not every compiler has a name for F16C here; no x86-64 machine has AVX2 without it.
OCTET_LOCAL bool runs_here() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

struct row {
  static constexpr const char* name = "avx2";
  static constexpr bool (*runs_here)() = &avx2::runs_here;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&avx2::encode<F, T>, &avx2::decode<F, T>};
  template <class T>
  static constexpr reduction<T> reduces = {&avx2::amax<T>, &avx2::amax_each<T>};
  template <class F, class T>
  static constexpr scaled_conversion<F, T> scales = {&avx2::quantize<F, T>,        &avx2::quantize_and_amax<F, T>,
                                                     &avx2::quantize_each<F, T>,   &avx2::dequantize<F, T>,
                                                     &avx2::dequantize_each<F, T>, &avx2::measure<F, T>};
  template <class F, class T>
  static constexpr product<F, T> products = {&avx2::arrange<T>, &avx2::multiply<F>, &avx2::dot<F, T>, &avx2::axpy<F>};
};

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet
#undef OCTET_ROW
#undef OCTET_ROW_INLINE
#undef OCTET_TARGET
#endif
