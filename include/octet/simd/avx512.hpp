// The row of x86-64 machines with AVX-512 F, BW, DQ, VL and VBMI: Ice Lake, Sapphire Rapids, Zen 4 and later.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_X86_64
#include <immintrin.h>

#include <utility>  // std::index_sequence

#include "scalar.hpp"

// GCC's intrinsics begin some results with an undefined register, and it warns of that (GCC bug 105593, gone in GCC
// 13).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

// The target of this row, and the two kinds of functions it holds.
#define OCTET_TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#define OCTET_ROW_INLINE OCTET_TARGET __attribute__((always_inline)) inline
#define OCTET_ROW [[maybe_unused]] OCTET_TARGET static

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx512 {

// Every rounding below is embedded in its instruction, so the control register has no say; subnormal floats, which it
// could flush, are either far below half a unit of every format or are left to the scalar row.
inline constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
inline constexpr int truncate = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
inline constexpr int least_magnitude = 0b0010,
                     greatest_magnitude = 0b0011;  // vrangeps: by magnitude, with the sign of x

// -- Memory ---------------------------------------------------------------------------------------------------------

// The lanes of 64 elements that lie within n, 16 at a time.
struct span64 {
  std::uint64_t lanes;
  OCTET_HOST_INLINE explicit span64(std::size_t n) : lanes(n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) {}
  OCTET_HOST_INLINE std::uint16_t part(int k) const { return static_cast<std::uint16_t>(lanes >> (16 * k)); }
};

// 16 values as floats; lanes outside are +0 and not read.
template <class T>
OCTET_ROW_INLINE __m512 load16(const T* x, __mmask16 lanes) {
  if constexpr (std::is_same_v<T, float>)
    return _mm512_maskz_loadu_ps(lanes, x);
  else if constexpr (is_bfloat16<T>)
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, x)), 16));
  else
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, x));
}

// The lanes that are NaN, by their class: -ffast-math folds comparisons with NaN, this it knows nothing of.
OCTET_ROW_INLINE __mmask16 nan16(__m512 x) { return _mm512_fpclass_ps_mask(x, 0x81); }

// 64 codes from four vectors of 32-bit words below 256.
OCTET_ROW_INLINE __m512i pack64(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d)));
}

// -- Encoding -------------------------------------------------------------------------------------------------------

// The codes of 16 floats, as scalar::nearest_code has them. The addend's low mantissa bits are zero, so the low 7 bits
// of the sum are r; the code's part that the least exponent takes away, least >> up, is an even number of units, and is
// planted in the addend instead of subtracted afterwards.
template <class F, bool Saturates>
OCTET_ROW_INLINE __m512i codes16(__m512 x) {
  constexpr int up = float_traits<float>::mantissa_bits - F::mantissa_bits;
  constexpr std::uint32_t least = static_cast<std::uint32_t>(F::least_exponent + 127) << 23;
  constexpr std::uint32_t planted = (static_cast<std::uint32_t>(up) << 23) + ((0u - (least >> up)) & 0x7F);
  const __m512 largest = _mm512_set1_ps(bit_cast<float>(octet::detail::decode_bits(F::from_bits(F::max_code))));
  const __m512 clamped = _mm512_range_ps(x, largest, least_magnitude);
  const __m512 above = _mm512_range_ps(clamped, _mm512_set1_ps(bit_cast<float>(least)), greatest_magnitude);
  const __m512i m = _mm512_and_si512(_mm512_castps_si512(above), _mm512_set1_epi32(static_cast<int>(0xFF800000)));
  const __m512i addend = _mm512_add_epi32(m, _mm512_set1_epi32(static_cast<int>(planted)));
  const __m512i sum = _mm512_castps_si512(_mm512_add_round_ps(clamped, _mm512_castsi512_ps(addend), nearest));
  const __m512i magnitude = _mm512_add_epi32(sum, _mm512_srli_epi32(m, up));
  // The sign, from x: bit 31 moved to where the format has it.
  const __m512i mask = _mm512_set1_epi32(F::magnitude_mask);
  const __m512i sign = _mm512_srli_epi32(_mm512_castps_si512(x), 32 - F::width);
  __m512i code = _mm512_ternarylogic_epi32(mask, magnitude, sign, 0xCA);  // mask ? magnitude : sign
  if constexpr (!F::has_negative_zero) code = _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(code, mask), code);
  if constexpr (!Saturates) {
    const __m512i a = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
    const __mmask16 over =
        _mm512_cmpge_epu32_mask(a, _mm512_set1_epi32(static_cast<int>(octet::detail::overflow_bits<F>())));
    constexpr int beyond = F::has_infinity ? F::infinity_code : F::nan_code;
    code = _mm512_mask_or_epi32(code, over, _mm512_andnot_si512(mask, sign), _mm512_set1_epi32(beyond));
  }
  return code;
}

template <class F>
OCTET_ROW_INLINE __m512i with_nan(__m512i codes, __m512 x) {
  return _mm512_mask_mov_epi32(codes, nan16(x), _mm512_set1_epi32(F::nan_code));
}

// E8M0, upward: the exponent field, plus one where there is a mantissa. Subnormals above 2^-127 are code 1.
template <bool Saturates>
OCTET_ROW_INLINE __m512i exponents16(__m512 x) {
  const __m512i a = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
  const __m512i up = _mm512_srli_epi32(_mm512_add_epi32(a, _mm512_set1_epi32(0x007FFFFF)), 23);
  const __m512i code = _mm512_maskz_mov_epi32(_mm512_cmpgt_epu32_mask(a, _mm512_set1_epi32(0x00400000)), up);
  const __m512i most = _mm512_set1_epi32(Saturates ? 0xFE : 0xFF);
  return _mm512_mask_mov_epi32(_mm512_min_epu32(code, most), _mm512_cmpgt_epu32_mask(a, _mm512_set1_epi32(0x7F800000)),
                               _mm512_set1_epi32(0xFF));
}

template <class F, bool Saturates, class T>
OCTET_ROW_INLINE void encode64(const T* in, F* out, std::size_t n) {
  const span64 s(n);
  __m512i codes[4];
  for (int k = 0; k < 4; ++k) {
    const __m512 x = load16(in + 16 * k, s.part(k));
    if constexpr (F::is_signed)
      codes[k] = with_nan<F>(codes16<F, Saturates>(x), x);
    else
      codes[k] = exponents16<Saturates>(x);
  }
  _mm512_mask_storeu_epi8(out, s.lanes, pack64(codes[0], codes[1], codes[2], codes[3]));
}

template <class F, bool Saturates, class T>
OCTET_ROW_INLINE void encode_all(const T* in, F* out, std::size_t n) {
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) encode64<F, Saturates>(in + i, out + i, 64);
  if (i < n) encode64<F, Saturates>(in + i, out + i, n - i);
}

template <class F, class T>
OCTET_ROW void encode(const T* in, F* out, std::size_t n, overflow o) {
  if constexpr (!is_vector_source<T>)
    scalar::encode(in, out, n, o);
  else if (o == overflow::saturate)
    encode_all<F, true>(in, out, n);
  else
    encode_all<F, false>(in, out, n);
}

// -- Decoding -------------------------------------------------------------------------------------------------------

// The upper 16 bits of the float (all the others are zero, but for NaN), or the 16-bit value, of every code of 7 bits:
// low bytes, then high bytes. A format of 8 bits has its sign above.
template <class F, class T>
struct byte_tables {
  alignas(64) std::uint8_t low[128], high[128];
  OCTET_HOST_INLINE constexpr byte_tables() : low(), high() {
    for (unsigned code = 0; code < 128; ++code) {
      const F q = F::from_bits(static_cast<std::uint8_t>(code));
      unsigned bits = 0;
      if constexpr (sizeof(T) == 2)
        bits = float_traits<T>::to_bits(octet::decode<T>(q));
      else
        bits = octet::detail::decode_bits(q) >> 16;
      low[code] = static_cast<std::uint8_t>(bits);
      high[code] = static_cast<std::uint8_t>(bits >> 8);
    }
  }
};
template <class F, class T>
static constexpr byte_tables<F, T> bytes_of{};

// Byte orders that come out as consecutive elements after unpacking within 128-bit lanes: into 16-bit words, and,
// taking the even and then the odd words, into 32-bit words.
struct byte_order {
  alignas(64) std::uint8_t at[64];
  OCTET_HOST_INLINE constexpr explicit byte_order(bool words) : at() {
    for (int lane = 0; lane < 4; ++lane)
      for (int i = 0; i < 16; ++i) {
        const int halves = 32 * (i / 8) + 8 * lane + i % 8;
        const int quarters = 32 * (i / 8) + 16 * (i % 2) + 4 * lane + i % 8 / 2;
        at[16 * lane + i] = static_cast<std::uint8_t>(words ? halves : quarters);
      }
  }
};
static constexpr byte_order for_words{true}, for_dwords{false};

template <class F>
OCTET_ROW_INLINE __mmask64 nan_lanes(__m512i v) {
  if constexpr (!F::has_nan)
    return 0;
  else if constexpr (F::has_negative_zero)
    return _mm512_cmpgt_epu8_mask(_mm512_and_si512(v, _mm512_set1_epi8(0x7F)),
                                  _mm512_set1_epi8(static_cast<char>(F::infinity_code)));
  else
    return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(static_cast<char>(F::sign_mask)));
}

// Low and high bytes of 64 values. The sign of NaN is lost; `nan` are its lanes.
struct two_bytes {
  __m512i low, high;
};
template <class F, class T>
OCTET_ROW_INLINE two_bytes look_up(__m512i v, __mmask64 nan) {
  const byte_tables<F, T>& table = bytes_of<F, T>;
  __m512i low = _mm512_permutex2var_epi8(_mm512_load_si512(table.low), v, _mm512_load_si512(table.low + 64));
  __m512i high = _mm512_permutex2var_epi8(_mm512_load_si512(table.high), v, _mm512_load_si512(table.high + 64));
  if constexpr (F::width == 8) {
    const __m512i sign = _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(0x80)));
    high = _mm512_mask_mov_epi8(_mm512_or_si512(high, sign), nan, _mm512_set1_epi8(0x7F));
    low = _mm512_mask_mov_epi8(low, nan, _mm512_set1_epi8(-1));
  }
  return {low, high};
}

// The floats of 64 codes, 16 a vector; lanes outside of n are not read.
template <class F>
struct floats64 {
  __m512 at[4];
};
template <class F>
OCTET_ROW_INLINE floats64<F> decode64(const F* in, span64 s) {
  const __m512i v = _mm512_permutexvar_epi8(_mm512_load_si512(for_dwords.at), _mm512_maskz_loadu_epi8(s.lanes, in));
  const two_bytes b = look_up<F, float>(v, nan_lanes<F>(v));
  const __m512i words[2] = {_mm512_unpacklo_epi8(b.low, b.high), _mm512_unpackhi_epi8(b.low, b.high)};
  floats64<F> result;
  for (int k = 0; k < 4; ++k) {
    const __m512i upper = k % 2 == 0 ? _mm512_slli_epi32(words[k / 2], 16)
                                     : _mm512_and_si512(words[k / 2], _mm512_set1_epi32(static_cast<int>(0xFFFF0000)));
    result.at[k] = _mm512_castsi512_ps(upper);
    if constexpr (F::has_nan)  // 7FFFFFFF
      result.at[k] =
          _mm512_mask_mov_ps(result.at[k], nan16(result.at[k]), _mm512_castsi512_ps(_mm512_set1_epi32(0x7FFFFFFF)));
  }
  return result;
}

template <class F, class T>
OCTET_ROW void decode(const F* in, T* out, std::size_t n) {
  if constexpr (!F::is_signed || !is_vector_source<T>) {
    scalar::decode(in, out, n);
  } else if constexpr (std::is_same_v<T, float>) {
    for (std::size_t i = 0; i < n; i += 64) {
      const span64 s(n - i);
      const floats64<F> x = decode64(in + i, s);
      for (int k = 0; k < 4; ++k) _mm512_mask_storeu_ps(out + i + 16 * k, s.part(k), x.at[k]);
    }
  } else {
    for (std::size_t i = 0; i < n; i += 64) {
      const span64 s(n - i);
      const __m512i v =
          _mm512_permutexvar_epi8(_mm512_load_si512(for_words.at), _mm512_maskz_loadu_epi8(s.lanes, in + i));
      const two_bytes b = look_up<F, T>(v, nan_lanes<F>(v));
      _mm512_mask_storeu_epi16(out + i, static_cast<__mmask32>(s.lanes), _mm512_unpacklo_epi8(b.low, b.high));
      _mm512_mask_storeu_epi16(out + i + 32, static_cast<__mmask32>(s.lanes >> 32),
                               _mm512_unpackhi_epi8(b.low, b.high));
    }
  }
}

// -- Reduction ------------------------------------------------------------------------------------------------------

// The larger magnitudes of a vector of values (as many of them as `lanes` has bits; the others are not read) and
// `largest`.
template <class T>
OCTET_ROW_INLINE __m512i larger(__m512i largest, const T* in, std::uint32_t lanes) {
  if constexpr (sizeof(T) == 4)
    return _mm512_max_epu32(largest, _mm512_and_si512(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(lanes), in),
                                                      _mm512_set1_epi32(0x7FFFFFFF)));
  else
    return _mm512_max_epu16(largest, _mm512_and_si512(_mm512_maskz_loadu_epi16(lanes, in), _mm512_set1_epi16(0x7FFF)));
}

template <class T>
OCTET_ROW exact::bits_of<T> amax(const T* in, std::size_t n) {
  if constexpr (!is_vector_source<T>) {
    return scalar::amax(in, n);
  } else {
    constexpr std::size_t lanes = 64 / sizeof(T);
    constexpr std::uint32_t all = static_cast<std::uint32_t>(~std::uint64_t{0} >> (64 - lanes));
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    std::size_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      a = larger(a, in + i, all);
      b = larger(b, in + i + lanes, all);
      c = larger(c, in + i + 2 * lanes, all);
      d = larger(d, in + i + 3 * lanes, all);
    }
    for (; i + lanes <= n; i += lanes) a = larger(a, in + i, all);
    if (i < n) b = larger(b, in + i, (std::uint32_t{1} << (n - i)) - 1);
    if constexpr (sizeof(T) == 4) {
      return _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_max_epu32(a, b), _mm512_max_epu32(c, d)));
    } else {
      const __m512i words = _mm512_max_epu16(_mm512_max_epu16(a, b), _mm512_max_epu16(c, d));
      const __m512i low = _mm512_and_si512(words, _mm512_set1_epi32(0xFFFF)), high = _mm512_srli_epi32(words, 16);
      return static_cast<exact::bits_of<T>>(_mm512_reduce_max_epu32(_mm512_max_epu32(low, high)));
    }
  }
}

template <class T>
OCTET_ROW void amax_each(const T* in, exact::bits_of<T>* largest, std::size_t n) {
  scalar::amax_each(in, largest, n);
}

// -- Scaled conversion ----------------------------------------------------------------------------------------------

// The floats nearest to x / d, given d and r, the float nearest to 1 / d, 2^-40 <= d <= 2^40. With q = x r, off by at
// most two units of the last place, x - q d is exact in a fused multiply-add and q + (x - q d) r rounds correctly
// (Markstein 1990, theorem 1: r is the correctly rounded reciprocal). The magnitude is first brought between 2^-70 and
// 2^80 (is_moderate), so every step is normal; NaN is taken care of by its x.
OCTET_ROW_INLINE __m512 divide16(__m512 x, __m512 d, __m512 r) {
  const __m512 raised = _mm512_range_ps(x, _mm512_set1_ps(0x1p-70f), greatest_magnitude);
  const __m512 a = _mm512_range_ps(raised, _mm512_set1_ps(0x1p80f), least_magnitude);
  const __m512 q = _mm512_mul_round_ps(a, r, nearest);
  const __m512 rest = _mm512_fnmadd_round_ps(q, d, a, nearest);
  return _mm512_fmadd_round_ps(rest, r, q, nearest);
}

template <bool Divides>
OCTET_ROW_INLINE __m512 scale16(__m512 x, __m512 d, __m512 r) {
  if constexpr (Divides) return divide16(x, d, r);
  const __m512 raised = _mm512_range_ps(x, _mm512_set1_ps(0x1p-70f), greatest_magnitude);
  return _mm512_mul_round_ps(raised, r, nearest);
}

template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_all(const T* in, F* out, std::size_t n, float stored, float multiplier) {
  const __m512 d = _mm512_set1_ps(stored), r = _mm512_set1_ps(multiplier);
  for (std::size_t i = 0; i < n; i += 64) {
    const span64 s(n - i);
    __m512i codes[4];
    for (int k = 0; k < 4; ++k) {
      const __m512 x = load16(in + i + 16 * k, s.part(k));
      codes[k] = with_nan<F>(codes16<F, true>(scale16<Divides>(x, d, r)), x);
    }
    _mm512_mask_storeu_epi8(out + i, s.lanes, pack64(codes[0], codes[1], codes[2], codes[3]));
  }
}

template <class F, class T>
OCTET_ROW void quantize(const T* in, F* out, std::size_t n, group_scale s) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (is_moderate(s.stored.value()) && is_moderate(s.multiplier.value())) {
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
  avx512::quantize(in, out, n, s);
  return avx512::amax(next, next_n);
}

template <class F, class T>
OCTET_ROW void quantize_each(const T* in, F* out, std::size_t n, group_scales s) {
  scalar::quantize_each(in, out, n, s);
}

template <class F, class T>
OCTET_ROW void dequantize(const F* in, T* out, std::size_t n, descale d) {
  if constexpr (std::is_same_v<T, float> && is_moderate_format<F>) {
    if (is_moderate(d.value())) {  // the product is then a normal float, or zero, infinite or NaN as its code is
      for (std::size_t i = 0; i < n; i += 64) {
        const span64 s(n - i);
        const floats64<F> x = decode64(in + i, s);
        for (int k = 0; k < 4; ++k)
          _mm512_mask_storeu_ps(out + i + 16 * k, s.part(k),
                                _mm512_mul_round_ps(x.at[k], _mm512_set1_ps(d.value()), nearest));
      }
      return;
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

// The upper 16 bits of the float of every code of 7 bits, which hold all of its value: high bytes, then low bytes. A
// format of 8 bits has its sign above. The first 64 low bytes are all there is to know where code | (code >> 1 & 20),
// whose lower 6 bits are the index, is another code with the same low byte, as it is in every format of which a binade
// takes at most 32 codes and whose largest codes are numbers or NaN: codes 40..7F go to 20..3F, with the same mantissa
// and the same lowest bit of the exponent.
template <class F>
struct product_tables {
  alignas(64) std::uint8_t high[128], low[128];
  bool low_in_64;
  OCTET_HOST_INLINE constexpr product_tables() : high(), low(), low_in_64(true) {
    for (unsigned code = 0; code < 128; ++code) {
      const std::uint32_t bits = octet::detail::decode_bits(F::from_bits(static_cast<std::uint8_t>(code)));
      high[code] = static_cast<std::uint8_t>(bits >> 24);
      low[code] = static_cast<std::uint8_t>(bits >> 16);
    }
    for (unsigned code = 64; code < 128; ++code) {
      const unsigned found = low[(code & 63u) | 32u];
      const bool is_nan = (high[code] & 0x7F) == 0x7F && low[code] > 0x80;
      low_in_64 = low_in_64 && (is_nan ? found > 0x80 : found == low[code]);
    }
  }
};
template <class F>
static constexpr product_tables<F> product_bytes{};

// What was loaded, or a constant, from now on in a register: g++ would load it or make it once more for each use, and
// the ports that takes are what decides how long a product lasts.
OCTET_ROW_INLINE __m512i in_register(__m512i v) {
  __asm__("" : "+v"(v));
  return v;
}
OCTET_ROW_INLINE __m512 in_register(__m512 v) {
  __asm__("" : "+v"(v));
  return v;
}

// 64 codes as floats, in the order that unpacking within 128-bit lanes gives: element 4 l + j of vector 2 h + o is code
// 16 l + 8 h + 2 j + o.
struct floats_4x16 {
  __m512 at[4];
};

// Decodes F.
template <class F>
struct product_decoder {
  __m512i high[2], low[2], sign, bit5, upper;
};
template <class F>
OCTET_ROW_INLINE product_decoder<F> decoder_of() {
  const product_tables<F>& tables = product_bytes<F>;
  return {{in_register(_mm512_load_si512(tables.high)), in_register(_mm512_load_si512(tables.high + 64))},
          {in_register(_mm512_load_si512(tables.low)), in_register(_mm512_load_si512(tables.low + 64))},
          in_register(_mm512_set1_epi8(-0x80)),
          in_register(_mm512_set1_epi8(0x20)),
          in_register(_mm512_set1_epi32(static_cast<int>(0xFFFF0000)))};
}

template <class F>
OCTET_ROW_INLINE floats_4x16 floats_of(const product_decoder<F>& with, __m512i v) {
  __m512i high = _mm512_permutex2var_epi8(with.high[0], v, with.high[1]), low;
  if constexpr (product_bytes<F>.low_in_64) {  // index: v | (v >> 1 & 20)
    const __m512i index = _mm512_ternarylogic_epi32(_mm512_srli_epi16(v, 1), v, with.bit5, 0xEC);
    low = _mm512_permutexvar_epi8(index, with.low[0]);
  } else {
    low = _mm512_permutex2var_epi8(with.low[0], v, with.low[1]);
  }
  if constexpr (F::width == 8) high = _mm512_ternarylogic_epi32(high, v, with.sign, 0xF8);  // high | (v & 80)
  if constexpr (F::has_nan && !F::has_negative_zero) {
    const __mmask64 nan = _mm512_cmpeq_epi8_mask(v, with.sign);
    high = _mm512_mask_mov_epi8(high, nan, _mm512_set1_epi8(0x7F));
    low = _mm512_mask_mov_epi8(low, nan, _mm512_set1_epi8(-1));
  }
  const __m512i first = _mm512_unpacklo_epi8(low, high), second = _mm512_unpackhi_epi8(low, high);
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(first, 16)), _mm512_castsi512_ps(_mm512_and_si512(first, with.upper)),
           _mm512_castsi512_ps(_mm512_slli_epi32(second, 16)),
           _mm512_castsi512_ps(_mm512_and_si512(second, with.upper))}};
}

// The byte order that makes it four runs of 16 consecutive codes.
struct runs_of_16 {
  alignas(64) std::uint8_t at[64];
  OCTET_HOST_INLINE constexpr runs_of_16() : at() {
    for (int l = 0; l < 4; ++l)
      for (int i = 0; i < 16; ++i)
        at[16 * l + i] = static_cast<std::uint8_t>(32 * (i / 8) + 16 * (i % 2) + 4 * l + i % 8 / 2);
  }
};
static constexpr runs_of_16 in_runs{};
template <class F>
OCTET_ROW_INLINE floats_4x16 floats_in_order(const product_decoder<F>& with, const F* codes, span64 s) {
  return floats_of(with,
                   _mm512_permutexvar_epi8(_mm512_load_si512(in_runs.at), _mm512_maskz_loadu_epi8(s.lanes, codes)));
}

template <class T>
OCTET_ROW_INLINE __m512 product_source(const T* x, __mmask16 lanes) {
  if constexpr (is_vector_source<T>) {
    return load16(x, lanes);
  } else {
    float wide[16] = {};
    for (int i = 0; i < 16; ++i)
      if ((lanes >> i & 1) != 0) wide[i] = bit_cast<float>(scalar::load_float(x + i));
    return _mm512_loadu_ps(wide);
  }
}

// Lane l of a vector of 16 becomes lane l of each of the four vectors.
template <class T>
OCTET_ROW void arrange(const T* x, std::size_t n, float* out) {
  const __m512i order = _mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
  for (std::size_t i = 0; i < n; i += 64) {
    const span64 s(n - i);
    const __m512 a = _mm512_permutexvar_ps(order, product_source(x + i, s.part(0)));
    const __m512 b = _mm512_permutexvar_ps(order, product_source(x + i + 16, s.part(1)));
    const __m512 c = _mm512_permutexvar_ps(order, product_source(x + i + 32, s.part(2)));
    const __m512 d = _mm512_permutexvar_ps(order, product_source(x + i + 48, s.part(3)));
    const __m512 ab = _mm512_shuffle_f32x4(a, b, 0x44), cd = _mm512_shuffle_f32x4(c, d, 0x44);
    _mm512_storeu_ps(out + i, _mm512_shuffle_f32x4(ab, cd, 0x88));
    _mm512_storeu_ps(out + i + 16, _mm512_shuffle_f32x4(ab, cd, 0xDD));
    const __m512 ab2 = _mm512_shuffle_f32x4(a, b, 0xEE), cd2 = _mm512_shuffle_f32x4(c, d, 0xEE);
    _mm512_storeu_ps(out + i + 32, _mm512_shuffle_f32x4(ab2, cd2, 0x88));
    _mm512_storeu_ps(out + i + 48, _mm512_shuffle_f32x4(ab2, cd2, 0xDD));
  }
}

// How M columns are multiplied: one column by a row at a time, so that the codes come as one stream; more by two rows,
// which share what they load of x, since loads would be what takes longest. Several sums where few others give an
// addition time before the next needs its result.
template <std::size_t M>
struct column_sums {
  static constexpr std::size_t rows = M == 1 ? 1 : 2, each = M == 1 ? 2 : 1;
  __m512 at[rows * M * each];
};

// Vector number V of the blocks w[r] times its part of column m, added to the sum of both.
template <std::size_t V, std::size_t M>
OCTET_ROW_INLINE void add_product(column_sums<M>& sums, const floats_4x16* w, std::size_t m, const float* column) {
  using S = column_sums<M>;
  __m512 x = _mm512_load_ps(column + 16 * V);
  if constexpr (S::rows == 2) x = in_register(x);
  __m512& first = sums.at[m * S::each + V % S::each];
  first = _mm512_fmadd_ps(w[0].at[V], x, first);
  if constexpr (S::rows == 2) {
    __m512& second = sums.at[(M + m) * S::each + V % S::each];
    second = _mm512_fmadd_ps(w[1].at[V], x, second);
  }
}
template <std::size_t M, std::size_t... Column>
OCTET_ROW_INLINE void add_products(column_sums<M>& sums, const floats_4x16* w, const float* x, std::size_t stride,
                                   std::index_sequence<Column...>) {
  (add_product<0>(sums, w, Column, x + Column * stride), ...);
  (add_product<1>(sums, w, Column, x + Column * stride), ...);
  (add_product<2>(sums, w, Column, x + Column * stride), ...);
  (add_product<3>(sums, w, Column, x + Column * stride), ...);
}
template <std::size_t M>
OCTET_ROW_INLINE __m512 sum_of(const column_sums<M>& sums, std::size_t row, std::size_t m) {
  constexpr std::size_t each = column_sums<M>::each;
  const __m512* s = sums.at + (row * M + m) * each;
  if constexpr (each == 2)
    return _mm512_add_ps(s[0], s[1]);
  else
    return s[0];
}

OCTET_ROW_INLINE void add_total(float* y, __m512 total, bool add) {
  const float sum = _mm512_reduce_add_ps(total);
  *y = add ? *y + sum : sum;
}

// A block is 64 codes: 13 operations on the two vector ports decode them (a table of 128 bytes takes 3 of these), 4 a
// column multiply. Near prefetches hide what is left of the latency that far ones, into the second cache, do not.
template <class F, std::size_t M, std::size_t... Column>
OCTET_ROW_INLINE void multiply_columns(const weights<F>& w, const activations& x, float* y, std::size_t y_stride,
                                       bool add, std::index_sequence<Column...> columns) {
  constexpr std::size_t rows = column_sums<M>::rows;
  const read_ahead ahead(w.cols, rows * w.stride);
  const product_decoder<F> with = decoder_of<F>();
  for (std::size_t r = 0; r < w.rows; r += rows) {
    const bool two = rows == 2 && r + 1 < w.rows;  // else the second row is the first once more
    const F* first = w.codes + r * w.stride;
    const F* second = first + (two ? w.stride : 0);
    const descale* d = w.descales + w.tiles.rows.tile(r) * w.tiles_a_row;
    const descale* e = two ? w.descales + w.tiles.rows.tile(r + 1) * w.tiles_a_row : d;
    const float* at = x.x;
    __m512 totals[rows * M] = {};
    for (std::size_t tile = 0, c0 = 0, c1 = 0; c0 < w.cols; ++tile, c0 = c1) {
      c1 = w.tiles.cols.end(tile, w.cols);
      column_sums<M> sums = {};
      floats_4x16 blocks[rows];
      const std::size_t whole = c1 - (c1 - c0) % 64;
      std::size_t c = c0;
      while (c < whole) {
        const std::size_t near = ahead.near(c), stop = least(whole, ahead.until(c));
        for (; c < stop; c += 64, at += 64) {
          _mm_prefetch(somewhere(first + c, near), _MM_HINT_T0);
          _mm_prefetch(somewhere(first + c, ahead.far), _MM_HINT_T1);
          blocks[0] = floats_of(with, in_register(_mm512_loadu_si512(first + c)));
          if constexpr (rows == 2) {
            _mm_prefetch(somewhere(second + c, near), _MM_HINT_T0);
            _mm_prefetch(somewhere(second + c, ahead.far), _MM_HINT_T1);
            blocks[1] = floats_of(with, in_register(_mm512_loadu_si512(second + c)));
          }
          add_products(sums, blocks, at, x.stride, columns);
        }
      }
      if (c < c1) {
        const span64 s(c1 - c);
        blocks[0] = floats_of(with, _mm512_maskz_loadu_epi8(s.lanes, first + c));
        if constexpr (rows == 2) blocks[1] = floats_of(with, _mm512_maskz_loadu_epi8(s.lanes, second + c));
        add_products(sums, blocks, at, x.stride, columns);
        at += 64;
      }
      const __m512 factor = _mm512_set1_ps(d[tile].value());
      ((totals[Column] = _mm512_fmadd_ps(sum_of(sums, 0, Column), factor, totals[Column])), ...);
      if constexpr (rows == 2) {
        const __m512 other = _mm512_set1_ps(e[tile].value());
        ((totals[M + Column] = _mm512_fmadd_ps(sum_of(sums, 1, Column), other, totals[M + Column])), ...);
      }
    }
    (add_total(y + Column * y_stride + r, totals[Column], add), ...);
    if (two) (add_total(y + Column * y_stride + r + 1, totals[(rows - 1) * M + Column], add), ...);
  }
}

template <class F, std::size_t M>
OCTET_ROW void multiply_by(const weights<F>& w, const activations& x, float* y, std::size_t y_stride, bool add) {
  multiply_columns<F, M>(w, x, y, y_stride, add, std::make_index_sequence<M>{});
}
template <class F>
OCTET_ROW void multiply(const weights<F>& w, const activations& x, float* y, std::size_t y_stride, bool add) {
  using kernel = void(const weights<F>&, const activations&, float*, std::size_t, bool);
  static constexpr kernel* by_columns[] = {&multiply_by<F, 1>, &multiply_by<F, 2>, &multiply_by<F, 3>,
                                           &multiply_by<F, 4>, &multiply_by<F, 5>, &multiply_by<F, 6>,
                                           &multiply_by<F, 7>, &multiply_by<F, 8>};
  by_columns[x.columns - 1](w, x, y, y_stride, add);
}

template <class F, class T>
OCTET_ROW_INLINE void add_block(__m512* sums, const product_decoder<F>& with, const F* codes, const T* x, span64 s) {
  const floats_4x16 w = floats_in_order(with, codes, s);
  sums[0] = _mm512_fmadd_ps(w.at[0], product_source(x, s.part(0)), sums[0]);
  sums[1] = _mm512_fmadd_ps(w.at[1], product_source(x + 16, s.part(1)), sums[1]);
  sums[2] = _mm512_fmadd_ps(w.at[2], product_source(x + 32, s.part(2)), sums[2]);
  sums[3] = _mm512_fmadd_ps(w.at[3], product_source(x + 48, s.part(3)), sums[3]);
}
template <class F, class T>
OCTET_ROW float dot(const F* codes, const T* x, std::size_t n) {
  const product_decoder<F> with = decoder_of<F>();
  __m512 sums[4] = {};
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) add_block(sums, with, codes + i, x + i, span64(64));
  if (i < n) add_block(sums, with, codes + i, x + i, span64(n - i));
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

template <class F>
OCTET_ROW_INLINE void axpy_block(__m512 a, const product_decoder<F>& with, const F* codes, float* y, span64 s) {
  const floats_4x16 w = floats_in_order(with, codes, s);
  for (int k = 0; k < 4; ++k) {
    float* out = y + 16 * k;
    _mm512_mask_storeu_ps(out, s.part(k), _mm512_fmadd_ps(a, w.at[k], _mm512_maskz_loadu_ps(s.part(k), out)));
  }
}
template <class F>
OCTET_ROW void axpy(float a, const F* codes, float* y, std::size_t n) {
  const __m512 factor = _mm512_set1_ps(a);
  const product_decoder<F> with = decoder_of<F>();
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) axpy_block(factor, with, codes + i, y + i, span64(64));
  if (i < n) axpy_block(factor, with, codes + i, y + i, span64(n - i));
}

// -- The line-up ----------------------------------------------------------------------------------------------------

OCTET_LOCAL bool runs_here() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi");
}

struct row {
  static constexpr const char* name = "avx512";
  static constexpr bool (*runs_here)() = &avx512::runs_here;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&avx512::encode<F, T>, &avx512::decode<F, T>};
  template <class T>
  static constexpr reduction<T> reduces = {&avx512::amax<T>, &avx512::amax_each<T>};
  template <class F, class T>
  static constexpr scaled_conversion<F, T> scales = {&avx512::quantize<F, T>,        &avx512::quantize_and_amax<F, T>,
                                                     &avx512::quantize_each<F, T>,   &avx512::dequantize<F, T>,
                                                     &avx512::dequantize_each<F, T>, &avx512::measure<F, T>};
  template <class F, class T>
  static constexpr product<F, T> products = {&avx512::arrange<T>, &avx512::multiply<F>, &avx512::dot<F, T>,
                                             &avx512::axpy<F>};
};

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet
#undef OCTET_ROW
#undef OCTET_ROW_INLINE
#undef OCTET_TARGET
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
