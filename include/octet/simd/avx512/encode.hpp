// Encoding in the AVX-512 row, 64 values at a time.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include "../scalar.hpp"
#include "memory.hpp"
#include "walk.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx512 {

// 16 floats rounded: in the low 7 bits of `sum` and the bits of `power` that merge64 takes is the code's
// magnitude, in two terms, and in bit 31 of `sum` is the sign.
struct rounded16 {
  __m512i sum, power;
};

// The rounding of scalar::nearest_code, with the sign left on all the way. |x| is below the least value that overflows.
// The addend's low mantissa bits are zero, so the low 7 bits of the sum are r; the code's part that the least exponent
// takes away, least >> up, is an even number of units, and is planted in the addend instead of subtracted afterwards.
template <class F>
OCTET_ROW_INLINE rounded16 round16(__m512 x) {
  constexpr int up = float_traits<float>::mantissa_bits - F::mantissa_bits;
  constexpr std::uint32_t least = static_cast<std::uint32_t>(F::least_exponent + 127) << 23;
  constexpr std::uint32_t planted = (static_cast<std::uint32_t>(up) << 23) + ((0u - (least >> up)) & 0x7F);
  const __m512 above = _mm512_range_ps(x, _mm512_set1_ps(bit_cast<float>(least)), greatest_magnitude);
  const __m512i power = _mm512_and_si512(_mm512_castps_si512(above), _mm512_set1_epi32(static_cast<int>(0xFF800000)));
  const __m512i addend = _mm512_add_epi32(power, _mm512_set1_epi32(static_cast<int>(planted)));
  return {_mm512_castps_si512(_mm512_add_round_ps(x, _mm512_castsi512_ps(addend), nearest)), power};
}

// The bytes in the order of memory. Byte k of 32-bit word number `lane` came from vector k: of consecutive elements, or
// of the even and the odd elements of 32; or byte k of a 16-bit word did, of two vectors.
struct store_order {
  alignas(64) std::uint8_t from[64];
  OCTET_HOST_INLINE constexpr store_order(int vectors, bool pairs) : from() {
    for (int lane = 0; lane < 64 / vectors; ++lane)
      for (int k = 0; k < vectors; ++k)
        from[pairs ? 32 * (k / 2) + 2 * lane + k % 2 : 64 / vectors * k + lane] =
            static_cast<std::uint8_t>(vectors * lane + k);
  }
};
static constexpr store_order of_runs{4, false}, of_pairs{4, true}, of_halves{2, false};
template <class T>
static constexpr const store_order& order_of = is_bfloat16<T> ? of_pairs : of_runs;

// The bit matrix (of gf2p8affineqb) that moves the sign from the lowest bit to its place above the magnitude.
template <class F>
OCTET_HOST_INLINE constexpr std::uint64_t sign_on_top() {
  std::uint64_t rows = 0;
  for (int bit = 0; bit < F::width; ++bit) rows |= std::uint64_t{1} << ((bit + 1) % F::width) << (8 * (7 - bit));
  return rows;
}

// 64 codes from four vectors. Each sum is rotated so that its low 7 bits and, below them, its sign are one byte of the
// 32-bit word, a different one for each vector; the four are merged, the exponents' bytes are added, and a last bit
// matrix brings the sign on top. An even number of units was added, so the sign below is not touched.
template <class F>
OCTET_ROW_INLINE __m512i merge64(const rounded16& a, const rounded16& b, const rounded16& c, const rounded16& d,
                                 const store_order& order) {
  constexpr int up = float_traits<float>::mantissa_bits - F::mantissa_bits;
  const __m512i low = _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xFF), _mm512_rol_epi32(a.sum, 1),
                                                _mm512_rol_epi32(b.sum, 9), 0xCA);  // mask ? a : b
  const __m512i high = _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xFF0000), _mm512_rol_epi32(c.sum, 17),
                                                 _mm512_rol_epi32(d.sum, 25), 0xCA);
  const __m512i sums = _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xFFFF), low, high, 0xCA);
  const __m512i take = _mm512_set1_epi64(0x0101010101010101 * (up - 1) + 0x2020202000000000);
  __m512i powers = _mm512_multishift_epi64_epi8(take, a.power);
  powers = _mm512_mask_multishift_epi64_epi8(powers, 0x2222222222222222, take, b.power);
  powers = _mm512_mask_multishift_epi64_epi8(powers, 0x4444444444444444, take, c.power);
  powers = _mm512_mask_multishift_epi64_epi8(powers, 0x8888888888888888, take, d.power);
  const __m512i bytes = _mm512_permutexvar_epi8(_mm512_load_si512(order.from), _mm512_add_epi8(sums, powers));
  const __m512i matrix = _mm512_set1_epi64(static_cast<long long>(sign_on_top<F>()));
  const __m512i codes = _mm512_gf2p8affine_epi64_epi8(bytes, matrix, 0);
  if constexpr (F::has_negative_zero) return codes;
  return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(codes, _mm512_set1_epi8(F::magnitude_mask)), codes);
}

template <class F>
OCTET_ROW_INLINE __mmask16 overflow16(__m512 x) {
  const __m512i a = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
  return _mm512_cmpge_epu32_mask(a, _mm512_set1_epi32(static_cast<int>(octet::detail::overflow_bits<F>())));
}

template <class F>
OCTET_ROW_INLINE __m512i with_overflow(__m512i codes, __mmask64 over) {
  constexpr char beyond = static_cast<char>(F::has_infinity ? F::infinity_code : F::nan_code);
  const __m512i sign = _mm512_andnot_si512(_mm512_set1_epi8(F::magnitude_mask), codes);
  return _mm512_mask_mov_epi8(codes, over, _mm512_or_si512(sign, _mm512_set1_epi8(beyond)));
}
template <class F>
OCTET_ROW_INLINE __m512i with_nan(__m512i codes, const floats64& x) {
  const __mmask64 nan = join64(nan16(x.at[0]), nan16(x.at[1]), nan16(x.at[2]), nan16(x.at[3]));
  return _mm512_mask_mov_epi8(codes, nan, _mm512_set1_epi8(static_cast<char>(F::nan_code)));
}
OCTET_ROW_INLINE bool has_nan(const floats64& x) {
  return !_mm512_kortestz(nan_in_either(x.at[0], x.at[1]), nan_in_either(x.at[2], x.at[3]));
}

// What is done to values before they are rounded: those that saturate come down to the largest value, and NaN too.
template <class F>
struct as_they_are {
  OCTET_ROW_INLINE __m512 operator()(__m512 x) const {
    const __m512 largest = _mm512_set1_ps(bit_cast<float>(octet::detail::decode_bits(F::from_bits(F::max_code))));
    return _mm512_range_ps(x, largest, least_magnitude);
  }
};

template <class F, bool Saturates, class Scale, class T>
struct encoding {
  const T* in;
  F* out;
  Scale scaled;

  OCTET_ROW_INLINE __m512i codes(const floats64& x, const store_order& order) const {
    return merge64<F>(round16<F>(scaled(x.at[0])), round16<F>(scaled(x.at[1])), round16<F>(scaled(x.at[2])),
                      round16<F>(scaled(x.at[3])), order);
  }
  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    const floats64 x = load64(in + i);
    store64<false>(out + i, codes(x, order_of<T>));
    if constexpr (Saturates) return !has_nan(x);
    const __m512 largest = _mm512_range_ps(_mm512_range_ps(x.at[0], x.at[1], greatest_magnitude),
                                           _mm512_range_ps(x.at[2], x.at[3], greatest_magnitude), greatest_magnitude);
    return overflow16<F>(largest) == 0 && !has_nan(x);
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i, span64 s) const {
    const floats64 x = load64(in + i, s);
    __m512i result = codes(x, of_runs);
    if constexpr (!Saturates)
      result = with_overflow<F>(result, join64(overflow16<F>(x.at[0]), overflow16<F>(x.at[1]), overflow16<F>(x.at[2]),
                                               overflow16<F>(x.at[3])));
    store_codes<Streams>(out + i, with_nan<F>(result, x), s);
  }
};

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
struct encoding_exponents {
  const T* in;
  F* out;

  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    careful<false>(i, span64(64));
    return true;
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i, span64 s) const {
    const floats64 x = load64(in + i, s);
    const __m512i low = _mm512_packus_epi32(exponents16<Saturates>(x.at[0]), exponents16<Saturates>(x.at[1]));
    const __m512i high = _mm512_packus_epi32(exponents16<Saturates>(x.at[2]), exponents16<Saturates>(x.at[3]));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    store_codes<Streams>(out + i, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)), s);
  }
};

#if OCTET_HAS_AVX512FP16

// a + b of 32 halves. Named in assembly, since an intrinsic would ask for its target on every function around it.
OCTET_ROW_INLINE __m512i add_halves(__m512i a, __m512i b) {
  __m512i sum;
  __asm__("vaddph %{rn-sae%}, %2, %1, %0" : "=v"(sum) : "v"(a), "v"(b));
  return sum;
}

// Formats whose values and ties, from half a unit up, are normal halves, as are the addends that round to them.
template <class F>
inline constexpr bool fits_halves = F::is_signed&& F::least_exponent - F::mantissa_bits - 1 >= -14 &&
                                    (F::max_code >> F::mantissa_bits) - F::bias + 10 - F::mantissa_bits <= 15;

// 16-bit values encoded in lanes of 16 bits: the same rounding by an addition, of halves. A bfloat16 becomes a half by
// a new bias; it is clamped to the largest value before, and what lies below 2^-14 is below half a unit, whatever half
// comes of it.
template <class F, bool Saturates, class T>
struct encoding_halves {
  static constexpr int special = is_bfloat16<T> ? 0x7F80 : 0x7C00;  // infinity
  const T* in;
  F* out;

  // The bits of a positive float of F's range as T.
  OCTET_HOST_INLINE static constexpr int as_source(std::uint32_t bits) {
    return static_cast<int>(float_traits<T>::to_bits(static_cast<T>(bit_cast<float>(bits))));
  }
  OCTET_ROW_INLINE static __m512i magnitude(__m512i x) { return _mm512_and_si512(x, _mm512_set1_epi16(0x7FFF)); }

  // In the low 7 bits of each lane the magnitude of the code.
  OCTET_ROW_INLINE static __m512i round32(__m512i x) {
    constexpr int up = 10 - F::mantissa_bits, least = (F::least_exponent + 15) << 10;
    constexpr int planted = (up << 10) + ((0 - (least >> up)) & 0x7F);
    constexpr int largest = as_source(octet::detail::decode_bits(F::from_bits(F::max_code)));
    __m512i a = _mm512_min_epu16(magnitude(x), _mm512_set1_epi16(largest));
    if constexpr (is_bfloat16<T>) a = _mm512_slli_epi16(_mm512_subs_epu16(a, _mm512_set1_epi16(112 << 7)), 3);
    const __m512i above = _mm512_max_epu16(a, _mm512_set1_epi16(least));
    const __m512i power = _mm512_and_si512(above, _mm512_set1_epi16(0x7C00));
    const __m512i sum = add_halves(a, _mm512_add_epi16(power, _mm512_set1_epi16(planted)));
    return _mm512_add_epi16(sum, _mm512_srli_epi16(power, up));
  }
  // Low bytes of the lanes of a and b.
  OCTET_ROW_INLINE static __m512i merge(__m512i a, __m512i b) {
    return _mm512_ternarylogic_epi32(_mm512_set1_epi16(0xFF), a, _mm512_slli_epi16(b, 8), 0xCA);
  }
  OCTET_ROW_INLINE static __m512i codes(__m512i x, __m512i y) {
    const __m512i magnitudes = merge(round32(x), round32(y));
    const __m512i signs = _mm512_ternarylogic_epi32(_mm512_set1_epi16(0xFF), _mm512_srli_epi16(x, 8), y, 0xCA);
    __m512i bytes = _mm512_ternarylogic_epi32(_mm512_set1_epi8(F::magnitude_mask), magnitudes,
                                              F::width == 8 ? signs : _mm512_srli_epi16(signs, 8 - F::width), 0xCA);
    if constexpr (F::width < 8) bytes = _mm512_and_si512(bytes, _mm512_set1_epi8(F::magnitude_mask | F::sign_mask));
    bytes = _mm512_permutexvar_epi8(_mm512_load_si512(of_halves.from), bytes);
    if constexpr (F::has_negative_zero) return bytes;
    return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(bytes, _mm512_set1_epi8(F::magnitude_mask)), bytes);
  }
  OCTET_ROW_INLINE static __mmask64 above64(__m512i x, __m512i y, int limit) {
    const __m512i most = _mm512_set1_epi16(static_cast<short>(limit));
    return _mm512_kunpackd(_mm512_cmpgt_epu16_mask(magnitude(y), most), _mm512_cmpgt_epu16_mask(magnitude(x), most));
  }

  // The largest value that does not overflow: a float's bits, cut off.
  static constexpr std::uint32_t below_overflow = octet::detail::overflow_bits<F>() - 1;
  static constexpr int last_finite =
      static_cast<int>(is_bfloat16<T> ? below_overflow >> 16 : (below_overflow - (112u << 23)) >> 13);
  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    const __m512i x = _mm512_loadu_si512(in + i), y = _mm512_loadu_si512(in + i + 32);
    store64<false>(out + i, codes(x, y));
    const __m512i largest = _mm512_max_epu16(magnitude(x), magnitude(y));
    return _mm512_cmpgt_epu16_mask(largest, _mm512_set1_epi16(Saturates ? special : last_finite)) == 0;
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i, span64 s) const {
    const __m512i x = _mm512_maskz_loadu_epi16(static_cast<__mmask32>(s.lanes), in + i);
    const __m512i y = _mm512_maskz_loadu_epi16(static_cast<__mmask32>(s.lanes >> 32), in + i + 32);
    __m512i result = codes(x, y);
    if constexpr (!Saturates) result = with_overflow<F>(result, above64(x, y, last_finite));
    result = _mm512_mask_mov_epi8(result, above64(x, y, special), _mm512_set1_epi8(static_cast<char>(F::nan_code)));
    store_codes<Streams>(out + i, result, s);
  }
};

#endif

template <class F, bool Saturates, class T, bool Fp16>
OCTET_ROW_INLINE auto encoder(const T* in, F* out) {
  if constexpr (!F::is_signed) return encoding_exponents<F, Saturates, T>{in, out};
#if OCTET_HAS_AVX512FP16
  else if constexpr (Fp16 && sizeof(T) == 2 && fits_halves<F>)
    return encoding_halves<F, Saturates, T>{in, out};
#endif
  else
    return encoding<F, Saturates, as_they_are<F>, T>{in, out, {}};
}

template <class F, class T, bool Fp16>
OCTET_ROW void encode(const T* in, F* out, std::size_t n, overflow o, bool streams) {
  if constexpr (!is_vector_source<T>)
    scalar::encode(in, out, n, o, streams);
  else if (o == overflow::saturate)
    walk(encoder<F, true, T, Fp16>(in, out), n, streams);
  else
    walk(encoder<F, false, T, Fp16>(in, out), n, streams);
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
