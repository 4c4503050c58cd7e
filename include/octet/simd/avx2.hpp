// The row of x86-64 machines with AVX2, FMA and F16C: Haswell, Zen and later.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_X86_64
#include <immintrin.h>

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
OCTET_ROW void encode(const T* in, F* out, std::size_t n, overflow o, bool streams) {
  if constexpr (!is_vector_source<T>) {
    scalar::encode(in, out, n, o, streams);
  } else {
    if (n == 0) return;
    if (F::is_signed && !scalar::rounds_to_nearest())
      scalar::encode(in, out, n, o, streams);
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
OCTET_ROW void decode(const F* in, T* out, std::size_t n, bool streams) {
  if constexpr (!F::is_signed || !is_vector_source<T>) {
    scalar::decode(in, out, n, streams);
  } else {
    if (n < 16) return scalar::decode(in, out, n, streams);
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
OCTET_ROW exact::bits_of<T> amax(const T* in, std::size_t n, bool streams) {
  constexpr std::size_t lanes = 32 / sizeof(T);
  if constexpr (!is_vector_source<T>) {
    return scalar::amax(in, n, streams);
  } else {
    if (n < lanes) return scalar::amax(in, n, streams);
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
OCTET_ROW void quantize(const T* in, F* out, std::size_t n, group_scale s, bool streams) {
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
  scalar::quantize(in, out, n, s, streams);
}

template <class F, class T>
OCTET_ROW exact::bits_of<T> quantize_and_amax(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                              std::size_t next_n, bool streams) {
  avx2::quantize(in, out, n, s, streams);
  return avx2::amax(next, next_n, streams);
}

// Whether all of 16 floats are in the range.
OCTET_ROW_INLINE bool within16(const floats16& x, float_range range) {
  const __m256i below = _mm256_set1_epi32(static_cast<int>(range.first) - 1);
  const __m256i end = _mm256_set1_epi32(static_cast<int>(range.end));
  const __m256i a = _mm256_castps_si256(x.at[0]), b = _mm256_castps_si256(x.at[1]);
  const __m256i a_in = _mm256_and_si256(_mm256_cmpgt_epi32(a, below), _mm256_cmpgt_epi32(end, a));
  const __m256i b_in = _mm256_and_si256(_mm256_cmpgt_epi32(b, below), _mm256_cmpgt_epi32(end, b));
  return _mm256_movemask_epi8(_mm256_and_si256(a_in, b_in)) == -1;
}
OCTET_ROW_INLINE floats16 load_floats16(const float* p) { return {{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}}; }

// 32 values, each by a scale of its own; false where a scale is not moderate.
template <class F, bool Divides, class T>
OCTET_ROW_INLINE bool quantize_each32(const T* in, F* out, const float* stored, const float* multipliers) {
  const floats16 d = load_floats16(stored), d_16 = load_floats16(stored + 16);
  const floats16 r = load_floats16(multipliers), r_16 = load_floats16(multipliers + 16);
  if (!within16(r, moderate) || !within16(r_16, moderate)) return false;
  if (!within16(d, moderate) || !within16(d_16, moderate)) return false;
  const words32 x = load32(in), a = magnitudes32(x);
  const words32 scaled = {{scale8<Divides>(a.at[0], d.at[0], r.at[0]), scale8<Divides>(a.at[1], d.at[1], r.at[1]),
                           scale8<Divides>(a.at[2], d_16.at[0], r_16.at[0]),
                           scale8<Divides>(a.at[3], d_16.at[1], r_16.at[1])}};
  store(out, codes32<F, true>(x, scaled));
  return true;
}
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_each_all(const T* in, F* out, std::size_t n, group_scales s) {
  const float* stored = reinterpret_cast<const float*>(s.stored);
  const float* multipliers = reinterpret_cast<const float*>(s.multipliers);
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32)
    if (!quantize_each32<F, Divides>(in + i, out + i, stored + i, multipliers + i))
      scalar::quantize_each(in + i, out + i, 32, {s.stored + i, s.multipliers + i, s.divides});
  const std::size_t rest = n - i;
  if (rest == 0) return;
  exact::bits_of<T> values[32] = {};
  F codes[32];
  float d[32], r[32];
  for (std::size_t k = 0; k < 32; ++k) d[k] = r[k] = 1;
  std::memcpy(values, in + i, rest * sizeof(T));
  std::memcpy(d, stored + i, rest * sizeof(float));
  std::memcpy(r, multipliers + i, rest * sizeof(float));
  if (quantize_each32<F, Divides>(reinterpret_cast<const T*>(values), codes, d, r))
    std::memcpy(out + i, codes, rest);
  else
    scalar::quantize_each(in + i, out + i, rest, {s.stored + i, s.multipliers + i, s.divides});
}

template <class F, class T>
OCTET_ROW void quantize_each(const T* in, F* out, std::size_t n, group_scales s) {
  if constexpr (!is_vector_source<T> || !is_moderate_format<F>)
    scalar::quantize_each(in, out, n, s);
  else if (!scalar::rounds_to_nearest())
    scalar::quantize_each(in, out, n, s);
  else if (s.divides)
    quantize_each_all<F, true>(in, out, n, s);
  else
    quantize_each_all<F, false>(in, out, n, s);
}

// The products of 8 decoded values c with descales (for 16 bits moderate ones) as floats that store16 rounds no more,
// or, to float16, rounds rightly; where additions round to nearest.
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
template <class F, class T>
OCTET_ROW_INLINE void dequantize16(const F* in, T* out, const floats16& d) {
  const floats16 c = decode16(in);
  store16(out, {{product8<F, T>(c.at[0], d.at[0]), product8<F, T>(c.at[1], d.at[1])}});
}

// Whether the vectors dequantize to T, and the descales they take.
template <class F, class T>
inline constexpr bool dequantizes = std::is_same_v<T, float> || (is_vector_source<T> && is_moderate_format<F>);
template <class F, class T>
inline constexpr float_range descales_for = sizeof(T) == 4 ? normal_descales<F> : moderate;

template <class F, class T>
OCTET_ROW void dequantize(const F* in, T* out, std::size_t n, descale d, bool streams) {
  if constexpr (dequantizes<F, T>) {
    if (n >= 16 && descales_for<F, T>.holds(d.value()) && scalar::rounds_to_nearest()) {
      const __m256 factor = _mm256_set1_ps(d.value());
      for (std::size_t i = 0;; i = i + 32 <= n ? i + 16 : n - 16) {
        dequantize16(in + i, out + i, {{factor, factor}});
        if (i + 16 == n) return;
      }
    }
  }
  scalar::dequantize(in, out, n, d, streams);
}

template <class F, class T>
OCTET_ROW void dequantize_each(const F* in, T* out, std::size_t n, const descale* d) {
  if constexpr (dequantizes<F, T>) {
    if (n >= 16 && scalar::rounds_to_nearest()) {
      for (std::size_t i = 0;; i = i + 32 <= n ? i + 16 : n - 16) {
        const floats16 factors = load_floats16(as_floats(d + i));
        if (within16(factors, descales_for<F, T>))
          dequantize16(in + i, out + i, factors);
        else
          scalar::dequantize_each(in + i, out + i, 16, d + i);
        if (i + 16 == n) return;
      }
    }
  }
  scalar::dequantize_each(in, out, n, d);
}

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
OCTET_ROW_INLINE classes8 classes_of(__m256i a, __m256i decoded, __m256 d, __m256 r) {
  constexpr int most = static_cast<int>(octet::detail::overflow_bits<F>()) - 1;
  const __m256i zero = _mm256_setzero_si256(), limit = _mm256_set1_epi32(infinity);
  const __m256i b = _mm256_and_si256(decoded, _mm256_set1_epi32(magnitude_bits));
  const __m256i nonzero = _mm256_cmpgt_epi32(a, zero), finite = _mm256_cmpgt_epi32(limit, a);
  const __m256i decoded_finite = _mm256_cmpgt_epi32(limit, b);
  const __m256i over = _mm256_cmpgt_epi32(scale8<Divides>(a, d, r), _mm256_set1_epi32(most));
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
  const words32 x = load32(in), a = magnitudes32(x);
  if (has_subnormal(a)) return false;
  const floats16 c = decode16(codes), c_16 = decode16(codes + 16);
  const __m256i y0 = _mm256_castps_si256(_mm256_mul_ps(c.at[0], d));
  const __m256i y1 = _mm256_castps_si256(_mm256_mul_ps(c.at[1], d));
  const __m256i y2 = _mm256_castps_si256(_mm256_mul_ps(c_16.at[0], d));
  const __m256i y3 = _mm256_castps_si256(_mm256_mul_ps(c_16.at[1], d));
  const classes8 k0 = classes_of<F, Divides>(a.at[0], y0, d, r), k1 = classes_of<F, Divides>(a.at[1], y1, d, r);
  const classes8 k2 = classes_of<F, Divides>(a.at[2], y2, d, r), k3 = classes_of<F, Divides>(a.at[3], y3, d, r);
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
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (is_moderate(s.stored.value()) && is_moderate(s.multiplier.value()) && scalar::rounds_to_nearest()) {
      const std::size_t to_lane_0 = (0 - first) % 8, head = to_lane_0 < n ? to_lane_0 : n;
      if (head != 0) scalar::measure(in, codes, head, first, s, sums);
      if (s.divides)
        measure_all<F, true>(in + head, codes + head, n - head, s, sums);
      else
        measure_all<F, false>(in + head, codes + head, n - head, s, sums);
      return;
    }
  }
  scalar::measure(in, codes, n, first, s, sums);
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
};

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet
#undef OCTET_ROW
#undef OCTET_ROW_INLINE
#undef OCTET_TARGET
#endif
