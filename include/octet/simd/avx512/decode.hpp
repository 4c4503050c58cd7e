// Decoding in the AVX-512 row: the bytes of every code's value, looked up 64 at a time.
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

// The upper 16 bits of the float (all the others are zero, but for NaN), or the 16-bit value, of every code of 7 bits:
// low bytes, then high bytes. A format of 8 bits has its sign above; E8M0 has none, and 8 bits of exponent.
template <class F, class T>
struct byte_tables {
  static constexpr unsigned codes = F::is_signed ? 128 : 256;
  alignas(64) std::uint8_t low[codes], high[codes];
  OCTET_HOST_INLINE constexpr byte_tables() : low(), high() {
    for (unsigned code = 0; code < codes; ++code) {
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
  if constexpr (!F::has_nan || !F::is_signed)  // the table has E8M0's NaN as it is wanted
    return 0;
  else if constexpr (F::has_negative_zero)
    return _mm512_cmpgt_epu8_mask(_mm512_and_si512(v, _mm512_set1_epi8(F::magnitude_mask)),
                                  _mm512_set1_epi8(static_cast<char>(F::infinity_code)));
  else
    return _mm512_cmpeq_epi8_mask(
        _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(F::magnitude_mask | F::sign_mask))),
        _mm512_set1_epi8(static_cast<char>(F::sign_mask)));
}

// Whether 64 low bytes are enough, the codes from 64 on having those of the codes from 32 to 63: all of a code but the
// subnormals repeats with the last exponent bit, in every format of which a binade takes at most 32 codes. A NaN need
// only stay one.
template <class F, class T>
OCTET_HOST_INLINE constexpr bool low_bytes_repeat() {
  const byte_tables<F, T>& table = bytes_of<F, T>;
  for (unsigned code = 64; code < 128; ++code) {
    const unsigned found = table.low[code % 64 | 32];
    const bool is_nan = isnan(F::from_bits(static_cast<std::uint8_t>(code)));
    if (is_nan ? found <= 0x80 : found != table.low[code]) return false;
  }
  return F::width == 8;
}

OCTET_ROW_INLINE __m512i look_up_256(const std::uint8_t* table, __m512i v) {
  const __m512i lower = _mm512_permutex2var_epi8(_mm512_load_si512(table), v, _mm512_load_si512(table + 64));
  const __m512i upper = _mm512_permutex2var_epi8(_mm512_load_si512(table + 128), v, _mm512_load_si512(table + 192));
  return _mm512_mask_mov_epi8(lower, _mm512_movepi8_mask(v), upper);
}

// The bytes of the results of the codes 0 to 63 and 64 to 127, and masks: as vectors, from which 64 codes are looked
// up.
struct byte_vectors {
  __m512i low[2], high[2], sign, bit5, upper_half;
};
OCTET_ROW_INLINE byte_vectors vectors_of(__m512i low, __m512i low_64, __m512i high, __m512i high_64) {
  return {{low, low_64},
          {high, high_64},
          _mm512_set1_epi8(static_cast<char>(0x80)),
          _mm512_set1_epi8(0x20),
          _mm512_set1_epi32(static_cast<int>(0xFFFF0000))};
}
template <class F, class T>
OCTET_ROW_INLINE byte_vectors vectors_of() {
  const byte_tables<F, T>& table = bytes_of<F, T>;
  return vectors_of(_mm512_load_si512(table.low), _mm512_load_si512(table.low + 64), _mm512_load_si512(table.high),
                    _mm512_load_si512(table.high + 64));
}

// Low and high bytes of 64 values; of NaN whatever the tables have.
struct two_bytes {
  __m512i low, high;
};
template <class F, bool Repeats>
OCTET_ROW_INLINE two_bytes look_up(const byte_vectors& from, __m512i v) {
  __m512i low, high = _mm512_permutex2var_epi8(from.high[0], v, from.high[1]);
  if constexpr (Repeats) {  // v | (v >> 1 & 0x20), of which 6 bits count
    const __m512i at = _mm512_ternarylogic_epi32(v, _mm512_srli_epi16(v, 1), from.bit5, 0xF8);
    low = _mm512_permutexvar_epi8(at, from.low[0]);
  } else {
    low = _mm512_permutex2var_epi8(from.low[0], v, from.low[1]);
  }
  if constexpr (F::width == 8) high = _mm512_ternarylogic_epi32(high, v, from.sign, 0xF8);  // high | (v & 0x80)
  return {low, high};
}
template <class F, class T>
OCTET_ROW_INLINE two_bytes look_up(__m512i v) {
  const byte_tables<F, T>& table = bytes_of<F, T>;
  if constexpr (F::is_signed)
    return look_up<F, low_bytes_repeat<F, T>()>(vectors_of<F, T>(), v);
  else
    return {look_up_256(table.low, v), look_up_256(table.high, v)};
}

// 7FFF for NaN.
OCTET_ROW_INLINE two_bytes with_nan_bytes(const two_bytes& b, __mmask64 nan) {
  return {_mm512_mask_mov_epi8(b.low, nan, _mm512_set1_epi8(-1)),
          _mm512_mask_mov_epi8(b.high, nan, _mm512_set1_epi8(0x7F))};
}

// 64 codes, in an order that comes out as consecutive elements.
template <class F>
OCTET_ROW_INLINE __m512i load_codes(const F* in, span64 s, const byte_order& order) {
  return _mm512_permutexvar_epi8(_mm512_load_si512(order.at), _mm512_maskz_loadu_epi8(s.lanes, in));
}
template <class F>
OCTET_ROW_INLINE __m512i load_codes(const F* in, const byte_order& order) {
  return _mm512_permutexvar_epi8(_mm512_load_si512(order.at), _mm512_loadu_si512(in));
}

// The floats of 64 codes, from their upper halves.
OCTET_ROW_INLINE floats64 to_floats(const two_bytes& b, __m512i upper_half) {
  const __m512i v = _mm512_unpacklo_epi8(b.low, b.high), w = _mm512_unpackhi_epi8(b.low, b.high);
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)), _mm512_castsi512_ps(_mm512_and_si512(v, upper_half)),
           _mm512_castsi512_ps(_mm512_slli_epi32(w, 16)), _mm512_castsi512_ps(_mm512_and_si512(w, upper_half))}};
}
OCTET_ROW_INLINE floats64 to_floats(const two_bytes& b) {
  return to_floats(b, _mm512_set1_epi32(static_cast<int>(0xFFFF0000)));
}
OCTET_ROW_INLINE __m512 plain_nan(__m512 x) {  // 7FFFFFFF
  return _mm512_mask_mov_ps(x, nan16(x), _mm512_castsi512_ps(_mm512_set1_epi32(0x7FFFFFFF)));
}
template <class F>
OCTET_ROW_INLINE floats64 decode64(const F* in, span64 s) {
  const __m512i v = load_codes(in, s, for_dwords);
  two_bytes b = look_up<F, float>(v);
  b = with_nan_bytes(b, nan_lanes<F>(v));
  const floats64 x = to_floats(b);
  if constexpr (!F::has_nan || !F::is_signed) return x;
  return {{plain_nan(x.at[0]), plain_nan(x.at[1]), plain_nan(x.at[2]), plain_nan(x.at[3])}};
}

template <class F, class T>
struct decoding {
  const F* in;
  T* out;

  OCTET_ROW_INLINE bool quick(std::size_t i) const {
    const __m512i v = load_codes(in + i, sizeof(T) == 4 ? for_dwords : for_words);
    const two_bytes b = look_up<F, T>(v);
    if constexpr (sizeof(T) == 4) {
      store_floats<false>(out + i, to_floats(b));
    } else {
      store64<false>(out + i, _mm512_unpacklo_epi8(b.low, b.high));
      store64<false>(out + i + 32, _mm512_unpackhi_epi8(b.low, b.high));
    }
    return nan_lanes<F>(v) == 0;
  }
  template <bool Streams>
  OCTET_ROW_INLINE void careful(std::size_t i, span64 s) const {
    if constexpr (sizeof(T) == 4) {
      store_floats<Streams>(out + i, decode64(in + i, s), s);
    } else {
      const __m512i v = load_codes(in + i, s, for_words);
      const two_bytes b = with_nan_bytes(look_up<F, T>(v), nan_lanes<F>(v));
      store_words<Streams>(out + i, _mm512_unpacklo_epi8(b.low, b.high), _mm512_unpackhi_epi8(b.low, b.high), s);
    }
  }
};

template <class F, class T>
OCTET_ROW void decode(const F* in, T* out, std::size_t n, bool streams) {
  if constexpr (!is_vector_source<T>)
    scalar::decode(in, out, n, streams);
  else
    walk(decoding<F, T>{in, out}, n, streams);
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
