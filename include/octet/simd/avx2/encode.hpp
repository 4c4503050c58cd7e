// Encoding in the AVX2 row, 32 values at a time.
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
namespace avx2 {

// The codes of 8 magnitudes that do not overflow, as scalar::nearest_code has them, where float additions round to
// nearest even; their low 7 bits. The addend's low mantissa bits are zero, so the low 7 bits of the sum are r; the
// code's part that the least exponent takes away, least >> up, is an even number of units, and is planted in the addend
// instead of subtracted afterwards. Nothing but bits of the sum is used, and its terms come from integers, so a
// compiler has no sum to rearrange.
template <class F>
OCTET_ROW_INLINE __m256i round8(__m256i a) {
  constexpr int up = float_traits<float>::mantissa_bits - F::mantissa_bits;
  constexpr std::uint32_t least = static_cast<std::uint32_t>(F::least_exponent + 127) << 23;
  constexpr std::uint32_t planted = (static_cast<std::uint32_t>(up) << 23) + ((0u - (least >> up)) & 0x7F);
  const __m256i above = _mm256_max_epi32(a, _mm256_set1_epi32(static_cast<int>(least)));
  const __m256i power = _mm256_and_si256(above, _mm256_set1_epi32(infinity));
  const __m256i addend = _mm256_add_epi32(power, _mm256_set1_epi32(static_cast<int>(planted)));
  const __m256i sum = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(addend)));
  return _mm256_and_si256(_mm256_add_epi32(sum, _mm256_srli_epi32(power, up)), _mm256_set1_epi32(0x7F));
}

// What the values are scaled by before they are rounded: nothing. `limit`: magnitudes above it (as bits) overflow or
// are NaN; `most`: the magnitude that those which saturate come down to.
template <class F>
struct as_they_are {
  OCTET_ROW_INLINE __m256i limit() const {
    return _mm256_set1_epi32(static_cast<int>(octet::detail::overflow_bits<F>()) - 1);
  }
  OCTET_ROW_INLINE __m256i most() const {
    return _mm256_set1_epi32(static_cast<int>(octet::detail::decode_bits(F::from_bits(F::max_code))));
  }
  OCTET_ROW_INLINE __m256i operator()(__m256i a) const { return a; }
};

// 32 values: the bits of their magnitudes as floats, and their signs, the highest bit of a byte each; both in the order
// of pack32. Of bfloat16 there are the even and the odd ones of 16, twice.
template <class T>
struct values32 {
  words32 a;
  __m256i signs;
};

OCTET_ROW_INLINE __m256i pack_signs(const words32& w) {
  return _mm256_packs_epi16(_mm256_packs_epi32(w.at[0], w.at[1]), _mm256_packs_epi32(w.at[2], w.at[3]));
}

template <class T>
OCTET_ROW_INLINE values32<T> load32(const T* x) {
  if constexpr (is_bfloat16<T>) {
    const __m256i v = load(x), w = load(x + 16), magnitude = _mm256_set1_epi16(0x7FFF);
    const __m256i upper = _mm256_set1_epi32(magnitude_bits & ~0xFFFF);
    const __m256i a = _mm256_and_si256(v, magnitude), b = _mm256_and_si256(w, magnitude);
    return {
        {{_mm256_slli_epi32(a, 16), _mm256_and_si256(v, upper), _mm256_slli_epi32(b, 16), _mm256_and_si256(w, upper)}},
        _mm256_packs_epi16(v, w)};
  } else {
    const words32 w = words_in_order(x);
    return {magnitudes32(w), pack_signs(w)};
  }
}

// The bytes of four vectors of words from 0 to 255 (or of masks), in the order of `signs`; and the order of memory.
template <class T>
OCTET_ROW_INLINE __m256i pack32(const words32& w) {
  if constexpr (is_bfloat16<T>)
    return _mm256_packus_epi16(_mm256_or_si256(w.at[0], _mm256_slli_epi32(w.at[1], 16)),
                               _mm256_or_si256(w.at[2], _mm256_slli_epi32(w.at[3], 16)));
  else
    return _mm256_packus_epi16(_mm256_packus_epi32(w.at[0], w.at[1]), _mm256_packus_epi32(w.at[2], w.at[3]));
}
template <class T>
OCTET_ROW_INLINE __m256i to_memory_order(__m256i bytes) {
  if constexpr (is_bfloat16<T>)
    return _mm256_permute4x64_epi64(bytes, 0b11011000);
  else
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// FF in the bytes of the magnitudes above `limit`.
template <class T>
OCTET_ROW_INLINE __m256i above32(const words32& a, __m256i limit) {
  const __m256i byte = _mm256_set1_epi32(0xFF);
  return pack32<T>({{_mm256_and_si256(_mm256_cmpgt_epi32(a.at[0], limit), byte),
                     _mm256_and_si256(_mm256_cmpgt_epi32(a.at[1], limit), byte),
                     _mm256_and_si256(_mm256_cmpgt_epi32(a.at[2], limit), byte),
                     _mm256_and_si256(_mm256_cmpgt_epi32(a.at[3], limit), byte)}});
}

template <class F>
OCTET_ROW_INLINE __m256i place_signs(__m256i signs) {
  const __m256i sign = _mm256_and_si256(signs, _mm256_set1_epi8(static_cast<char>(0x80)));
  return F::width == 8 ? sign : _mm256_srli_epi16(sign, 8 - F::width);
}

// The codes of 32 magnitudes that do not overflow, in the order of pack32.
template <class F, class T>
OCTET_ROW_INLINE __m256i codes32(const words32& a, __m256i signs) {
  const __m256i packed = pack32<T>({{round8<F>(a.at[0]), round8<F>(a.at[1]), round8<F>(a.at[2]), round8<F>(a.at[3])}});
  const __m256i code = _mm256_or_si256(packed, place_signs<F>(signs));
  if constexpr (F::has_negative_zero) return code;
  return _mm256_andnot_si256(_mm256_cmpeq_epi8(packed, _mm256_setzero_si256()), code);
}

template <class F, bool Saturates, class Scale, class T>
struct encoding {
  const T* in;
  F* out;
  Scale scaled;

  OCTET_ROW_INLINE __m256i codes(const words32& a, __m256i signs) const {
    return codes32<F, T>({{scaled(a.at[0]), scaled(a.at[1]), scaled(a.at[2]), scaled(a.at[3])}}, signs);
  }
  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    const values32<T> x = load32(in + i);
    store(out + i, to_memory_order<T>(codes(x.a, x.signs)));
    return !any(_mm256_cmpgt_epi32(merged_max(x.a), scaled.limit()));
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i) const {
    const values32<T> x = load32(in + i);
    const __m256i most = scaled.most();
    __m256i code = codes({{_mm256_min_epi32(x.a.at[0], most), _mm256_min_epi32(x.a.at[1], most),
                           _mm256_min_epi32(x.a.at[2], most), _mm256_min_epi32(x.a.at[3], most)}},
                         x.signs);
    if constexpr (!Saturates && F::has_nan) {
      constexpr char beyond = static_cast<char>(F::has_infinity ? F::infinity_code : F::nan_code);
      code = _mm256_blendv_epi8(code, _mm256_or_si256(place_signs<F>(x.signs), _mm256_set1_epi8(beyond)),
                                above32<T>(x.a, scaled.limit()));
    }
    code = _mm256_blendv_epi8(code, _mm256_set1_epi8(static_cast<char>(F::nan_code)),
                              above32<T>(x.a, _mm256_set1_epi32(infinity)));
    store<Streams>(out + i, to_memory_order<T>(code));
  }
};

// E8M0, upward: the exponent field, plus one where there is a mantissa. Subnormals above 2^-127 are code 1.
template <bool Saturates>
OCTET_ROW_INLINE __m256i exponents8(__m256i a) {
  const __m256i up = _mm256_srli_epi32(_mm256_add_epi32(a, _mm256_set1_epi32(0x007FFFFF)), 23);
  const __m256i code = _mm256_and_si256(_mm256_cmpgt_epi32(a, _mm256_set1_epi32(0x00400000)), up);
  const __m256i nan = _mm256_srli_epi32(_mm256_cmpgt_epi32(a, _mm256_set1_epi32(infinity)), 24);
  return _mm256_or_si256(_mm256_min_epi32(code, _mm256_set1_epi32(Saturates ? 0xFE : 0xFF)), nan);
}

template <class F, bool Saturates, class T>
struct encoding_exponents {
  const T* in;
  F* out;

  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    careful<false>(i);
    return true;
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i) const {
    const words32 a = load32(in + i).a;
    store<Streams>(out + i,
                   to_memory_order<T>(pack32<T>({{exponents8<Saturates>(a.at[0]), exponents8<Saturates>(a.at[1]),
                                                  exponents8<Saturates>(a.at[2]), exponents8<Saturates>(a.at[3])}})));
  }
};

template <bool Saturates, class F, class T>
OCTET_ROW_INLINE void encode_all(const T* in, F* out, std::size_t n, bool streams) {
  if constexpr (F::is_signed)
    walk(encoding<F, Saturates, as_they_are<F>, T>{in, out, {}}, n, streams);
  else
    walk(encoding_exponents<F, Saturates, T>{in, out}, n, streams);
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
      encode_all<true>(in, out, n, streams);
    else
      encode_all<false>(in, out, n, streams);
  }
}

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
