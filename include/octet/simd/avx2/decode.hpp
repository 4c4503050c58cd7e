// Decoding in the AVX2 row: codes moved up beside the mantissa, and subnormals looked up.
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

// A code's magnitude, moved up beside the mantissa of a bfloat16 (the upper half of a float) or of a half, is the
// value's bits but for the exponent's bias, if both are normal. A subnormal's bits come from a table, as what is added
// to that.
template <class F, class T>
struct decode_words {
  using Word = std::conditional_t<is_float16<T>, float16, bfloat16>;
  using W = float_traits<Word>;
  static constexpr int up = W::mantissa_bits - F::mantissa_bits;
  static constexpr int rebias = (W::bias - F::bias) * (1 << W::mantissa_bits);
  // Added to the 2^M least codes; they are looked up at the end of the 16 bytes.
  alignas(16) std::uint8_t low[16] = {}, high[16] = {};
  bool exact = F::is_signed && F::mantissa_bits <= 4 && rebias >= 0;  // whether all codes come out right

  OCTET_HOST_INLINE constexpr decode_words() {
    for (unsigned code = 0; exact && code <= F::max_code; ++code) {
      const F q = F::from_bits(static_cast<std::uint8_t>(code));
      const unsigned linear = (code << up) + static_cast<unsigned>(rebias), bits = W::to_bits(octet::decode<Word>(q));
      if (code < 1u << F::mantissa_bits) {
        low[16 - (1 << F::mantissa_bits) + code] = static_cast<std::uint8_t>(bits - linear);
        high[16 - (1 << F::mantissa_bits) + code] = static_cast<std::uint8_t>((bits - linear) >> 8);
      } else {
        exact = exact && bits == linear;
      }
    }
  }
};
template <class F, class T>
static constexpr decode_words<F, T> words_of{};

// The 16-bit words of 32 codes, in order: from each half of `codes`, the lower 8 bytes to `first`.
struct words16 {
  __m256i first, second;
};
// The upper halves of floats of 16 E8M0 codes: the exponent, but 0040 (2^-127) for 0 and 7FFF for FF.
OCTET_ROW_INLINE __m256i exponent_words(__m256i codes) {
  const __m256i w = _mm256_slli_epi16(codes, 7);
  const __m256i zero = _mm256_cmpeq_epi16(w, _mm256_setzero_si256());
  const __m256i nan = _mm256_cmpeq_epi16(w, _mm256_set1_epi16(0x7F80));
  return _mm256_or_si256(w,
                         _mm256_or_si256(_mm256_and_si256(zero, _mm256_set1_epi16(0x40)), _mm256_srli_epi16(nan, 9)));
}
template <class F, class T>
OCTET_ROW_INLINE words16 signed_words(__m256i codes) {
  using D = decode_words<F, T>;
  const D& table = words_of<F, T>;
  const __m256i a = _mm256_and_si256(codes, _mm256_set1_epi8(F::magnitude_mask));
  // The highest bit, at which the table gives 0, is set for every code but the 2^M least.
  const __m256i at = _mm256_add_epi8(a, _mm256_set1_epi8(0x80 - (1 << F::mantissa_bits)));
  const __m256i low = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_half(table.low)), at);
  const __m256i high = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_half(table.high)), at);
  // The code in the upper byte with its sign on top, moved down to its place with the sign left where it is.
  const __m256i zero = _mm256_setzero_si256();
  const __m256i keep = _mm256_set1_epi16(static_cast<short>(0x8000 | F::magnitude_mask << D::up));
  const __m256i rebias = _mm256_set1_epi16(static_cast<short>(D::rebias));
  __m256i v = _mm256_unpacklo_epi8(zero, codes), w = _mm256_unpackhi_epi8(zero, codes);
  if constexpr (F::width < 8) {
    v = _mm256_slli_epi16(v, 8 - F::width);
    w = _mm256_slli_epi16(w, 8 - F::width);
  }
  constexpr int down = 8 - D::up + 8 - F::width;
  v = _mm256_add_epi16(_mm256_and_si256(_mm256_srai_epi16(v, down), keep), rebias);
  w = _mm256_add_epi16(_mm256_and_si256(_mm256_srai_epi16(w, down), keep), rebias);
  return {_mm256_add_epi16(v, _mm256_unpacklo_epi8(low, high)), _mm256_add_epi16(w, _mm256_unpackhi_epi8(low, high))};
}

template <class F, class T>
OCTET_ROW_INLINE words16 look_up(__m256i codes) {
  if constexpr (!F::is_signed)
    return {exponent_words(_mm256_unpacklo_epi8(codes, _mm256_setzero_si256())),
            exponent_words(_mm256_unpackhi_epi8(codes, _mm256_setzero_si256()))};
  else
    return signed_words<F, T>(codes);
}

// FF where a code is NaN or infinite.
template <class F>
OCTET_ROW_INLINE __m256i special_codes(__m256i codes) {
  const __m256i a = _mm256_and_si256(codes, _mm256_set1_epi8(F::magnitude_mask));
  __m256i special = _mm256_cmpgt_epi8(a, _mm256_set1_epi8(F::max_code));
  if constexpr (F::has_nan && !F::has_negative_zero)
    special = _mm256_or_si256(
        special, _mm256_cmpeq_epi8(
                     _mm256_and_si256(codes, _mm256_set1_epi8(static_cast<char>(F::magnitude_mask | F::sign_mask))),
                     _mm256_set1_epi8(static_cast<char>(F::sign_mask))));
  return special;
}

// 7FFF for NaN, the infinity with its sign: in words whose codes these were.
template <class F, class T>
OCTET_ROW_INLINE words16 with_specials(const words16& x, __m256i codes) {
  constexpr int infinite = is_float16<T> ? 0x7C00 : 0x7F80;
  const __m256i special = special_codes<F>(codes);
  const __m256i a = _mm256_and_si256(codes, _mm256_set1_epi8(F::magnitude_mask));
  const __m256i inf =
      F::has_infinity ? _mm256_cmpeq_epi8(a, _mm256_set1_epi8(F::infinity_code)) : _mm256_setzero_si256();
  const __m256i nan = _mm256_andnot_si256(inf, special);
  const __m256i sign = _mm256_set1_epi16(-0x8000), value = _mm256_set1_epi16(infinite),
                most = _mm256_set1_epi16(0x7FFF);
  const __m256i v = _mm256_blendv_epi8(x.first, _mm256_or_si256(_mm256_and_si256(x.first, sign), value),
                                       _mm256_unpacklo_epi8(inf, inf));
  const __m256i w = _mm256_blendv_epi8(x.second, _mm256_or_si256(_mm256_and_si256(x.second, sign), value),
                                       _mm256_unpackhi_epi8(inf, inf));
  return {_mm256_blendv_epi8(v, most, _mm256_unpacklo_epi8(nan, nan)),
          _mm256_blendv_epi8(w, most, _mm256_unpackhi_epi8(nan, nan))};
}

// 32 codes in the order from which unpacking within halves, to 16 or to 32 bits, gives consecutive elements.
template <class T, class F>
OCTET_ROW_INLINE __m256i load_codes(const F* in) {
  if constexpr (sizeof(T) == 2) return _mm256_permute4x64_epi64(load(in), 0b11011000);
  return _mm256_permutevar8x32_epi32(load(in), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

// The floats of which these are the upper halves.
OCTET_ROW_INLINE floats32 to_floats(const words16& x) {
  const __m256i zero = _mm256_setzero_si256();
  return {{_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, x.first)),
           _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, x.first)),
           _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, x.second)),
           _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, x.second))}};
}
OCTET_ROW_INLINE __m256 plain_nan(__m256 x) {  // 7FFFFFFF; there are no other NaN whose upper half is 7FFF
  const __m256i bits = _mm256_castps_si256(x), nan = _mm256_cmpgt_epi32(bits, _mm256_set1_epi32(infinity));
  return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_srli_epi32(nan, 1)));
}
template <class F>
OCTET_ROW_INLINE floats32 decode32(const F* in) {
  const __m256i codes = load_codes<float>(in);
  if constexpr (!F::is_signed) {
    return to_floats(look_up<F, float>(codes));
  } else {
    const floats32 x = to_floats(with_specials<F, float>(look_up<F, float>(codes), codes));
    return {{plain_nan(x.at[0]), plain_nan(x.at[1]), plain_nan(x.at[2]), plain_nan(x.at[3])}};
  }
}

template <class F, class T>
struct decoding {
  const F* in;
  T* out;

  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    const __m256i codes = load_codes<T>(in + i);
    const words16 x = look_up<F, T>(codes);
    if constexpr (sizeof(T) == 4) {
      store_floats<false>(out + i, to_floats(x));
    } else {
      store(out + i, x.first);
      store(out + i + 16, x.second);
    }
    if constexpr (!F::is_signed)
      return true;
    else
      return !any(special_codes<F>(codes));
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i) const {
    if constexpr (sizeof(T) == 4) {
      store_floats<Streams>(out + i, decode32(in + i));
    } else {
      const __m256i codes = load_codes<T>(in + i);
      words16 x = look_up<F, T>(codes);
      if constexpr (F::is_signed) x = with_specials<F, T>(x, codes);
      store<Streams>(out + i, x.first);
      store<Streams>(out + i + 16, x.second);
    }
  }
};

template <class F, class T>
OCTET_ROW void decode(const F* in, T* out, std::size_t n, bool streams) {
  if constexpr (is_vector_source<T>) {
    if constexpr (words_of<F, T>.exact || (!F::is_signed && !is_float16<T>)) {
      if (n != 0) walk(decoding<F, T>{in, out}, n, streams);
      return;
    }
  }
  scalar::decode(in, out, n, streams);
}

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
