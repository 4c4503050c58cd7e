// The row of x86-64 machines with AVX2, FMA and F16C: Haswell, Zen and later.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_X86_64
#include <immintrin.h>

#include <utility>  // std::index_sequence

#include "scalar.hpp"

// The target of this row, and the kinds of functions it holds.
#define OCTET_TARGET __attribute__((target("avx2,fma,f16c")))
#define OCTET_ROW_INLINE OCTET_TARGET __attribute__((always_inline)) inline
#define OCTET_ROW [[maybe_unused]] OCTET_TARGET static
#define OCTET_ROW_LOOP [[maybe_unused]] OCTET_TARGET static __attribute__((noinline))

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx2 {

// Rounding follows the control register here: what must round to nearest even asks scalar::rounds_to_nearest() once a
// call, and is left to the scalar row otherwise. Magnitudes are clamped and compared as integers, of which neither a
// flush-to-zero mode nor -ffast-math knows.
inline constexpr int sign_bit = static_cast<int>(0x80000000), magnitude_bits = 0x7FFFFFFF, infinity = 0x7F800000;

// -- Memory ---------------------------------------------------------------------------------------------------------

OCTET_ROW_INLINE __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
OCTET_ROW_INLINE __m128i load_half(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
OCTET_ROW_INLINE void store(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
template <bool Streams>
OCTET_ROW_INLINE void store(void* p, __m256i v) {
  if constexpr (Streams)
    _mm256_stream_si256(static_cast<__m256i*>(p), v);
  else
    store(p, v);
}

template <std::size_t Bytes>
OCTET_ROW_INLINE void prefetch_lines(const void* p) {
  for (std::size_t b = 0; b < Bytes; b += 64) _mm_prefetch(static_cast<const char*>(p) + b, _MM_HINT_T0);
}

// Vectors of 32 values, written out wherever they are made: at -O2 g++ leaves a loop of four a loop, and its array in
// memory.
struct words32 {
  __m256i at[4];
};
OCTET_ROW_INLINE __m256i merged_max(const words32& w) {
  return _mm256_max_epi32(_mm256_max_epi32(w.at[0], w.at[1]), _mm256_max_epi32(w.at[2], w.at[3]));
}
OCTET_ROW_INLINE bool any(__m256i mask) { return _mm256_movemask_epi8(mask) != 0; }

// -- Walks ----------------------------------------------------------------------------------------------------------

// A kernel writes 32 results from 32 values at a time:
//   in, out              where they are
//   quick(i)             values i to i + 31; true if none of them needed more care than this takes
//   careful<Streams>(i)  the same, whatever the values are; with Streams past the cache
// After values that need care (NaN, or what overflows) a walk stays careful for a while: a branch that goes one way for
// long costs little, one that NaN here and there decides costs more than the care. The loops are functions of their
// own, so that each is compiled once and none has another's code in the way of its registers.
// Blocks from i on; returns the first that needs care, or where less than a block is left.
template <class Kernel>
OCTET_ROW_LOOP std::size_t quick_run(const Kernel& k, std::size_t i, std::size_t n) {
  for (; n - i >= 32; i += 32)
    if (!k.quick(i)) break;
  return i;
}
template <class Kernel>
OCTET_ROW_LOOP void careful_run(const Kernel& k, std::size_t i, std::size_t n) {
  for (; n - i >= 32; i += 32) k.template careful<false>(i);
}

// A run that is no multiple of 32 ends with a block that overlaps the one before: input and output are apart, so the
// same bytes are written twice. A run shorter than a block goes through a buffer.
template <class Kernel>
OCTET_ROW_LOOP void last_run(const Kernel& k, std::size_t n) {
  if (n >= 32) return k.template careful<false>(n - 32);
  alignas(32) unsigned char values[32 * sizeof(*k.in)] = {}, results[32 * sizeof(*k.out)];
  std::memcpy(values, k.in, n * sizeof(*k.in));
  Kernel block = k;
  block.in = reinterpret_cast<decltype(k.in)>(values);
  block.out = reinterpret_cast<decltype(k.out)>(results);
  block.template careful<false>(0);
  std::memcpy(k.out, results, n * sizeof(*k.out));
}

// Elements i to n - 1; i is 0 or n at least 32.
template <class Kernel>
OCTET_ROW_INLINE void walk_from(const Kernel& k, std::size_t i, std::size_t n) {
  while (n - i >= 32) {
    i = quick_run(k, i, n);
    if (n - i < 32) break;
    const std::size_t end = n - i < careful_for ? n - (n - i) % 32 : i + careful_for;
    careful_run(k, i, end);
    i = end;
  }
  if (i < n) last_run(k, n);
}

// Work that streams (pages): the stores go past the cache. Memory takes longer than the care. The results must lie on a
// 64-byte boundary. Returns where less than a page is left.
template <class Kernel>
OCTET_ROW_LOOP std::size_t page_run(const Kernel& k, std::size_t i, std::size_t n) {
  using P = pages<Kernel>;
  for (std::size_t round = P::round(n - i); round != 0; i += round, round = P::round(n - i))
    for (std::size_t at = i; at < i + P::page; at += 64)
      for (std::size_t stream = at; stream < at + round; stream += P::page) {
        prefetch_lines<64 * P::in_bytes>(somewhere(k.in, (stream + round) * P::in_bytes));
        k.template careful<true>(stream);
        k.template careful<true>(stream + 32);
      }
  _mm_sfence();
  return i;
}

template <class Kernel>
OCTET_ROW_INLINE void walk(const Kernel& k, std::size_t n, bool streams) {
  std::size_t i = 0;
  const std::size_t before = (0 - reinterpret_cast<std::uintptr_t>(k.out)) % 64;  // bytes to the boundary
  if (streams && before % sizeof(*k.out) == 0 && n >= 64 + pages<Kernel>::page) {
    i = before / sizeof(*k.out);
    if (i != 0) careful_run(k, 0, 64);
    i = page_run(k, i, n);
  }
  walk_from(k, i, n);
}

// -- Encoding -------------------------------------------------------------------------------------------------------

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
template <class T>
OCTET_ROW_INLINE words32 words_in_order(const T* x) {
  return {{load8(x), load8(x + 8), load8(x + 16), load8(x + 24)}};
}
OCTET_ROW_INLINE words32 magnitudes32(const words32& w) {
  const __m256i mask = _mm256_set1_epi32(magnitude_bits);
  return {{_mm256_and_si256(w.at[0], mask), _mm256_and_si256(w.at[1], mask), _mm256_and_si256(w.at[2], mask),
           _mm256_and_si256(w.at[3], mask)}};
}
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

// -- Decoding -------------------------------------------------------------------------------------------------------

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

// Floats of which these are the upper halves.
struct floats32 {
  __m256 at[4];
};
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
template <bool Streams>
OCTET_ROW_INLINE void store_floats(float* out, const floats32& x) {
  store<Streams>(out, _mm256_castps_si256(x.at[0]));
  store<Streams>(out + 8, _mm256_castps_si256(x.at[1]));
  store<Streams>(out + 16, _mm256_castps_si256(x.at[2]));
  store<Streams>(out + 24, _mm256_castps_si256(x.at[3]));
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

// The largest magnitudes so far, in four vectors: a dependent chain would wait for each maximum.
template <class T>
struct largest_of {
  static constexpr std::size_t lanes = 32 / sizeof(T);
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;

  OCTET_ROW_INLINE largest_of() {}
  OCTET_ROW_INLINE void add_four(const T* x) {  // 4 * lanes values
    a = larger<T>(a, magnitudes(x));
    b = larger<T>(b, magnitudes(x + lanes));
    c = larger<T>(c, magnitudes(x + 2 * lanes));
    d = larger<T>(d, magnitudes(x + 3 * lanes));
  }
  OCTET_ROW_INLINE void add_four_ahead(const T* x) {
    prefetch_lines<128>(somewhere(x, stream_ahead));
    add_four(x);
  }
  // The largest of these and of the n values from x on.
  OCTET_ROW_INLINE exact::bits_of<T> with_run(const T* x, std::size_t n) {
    std::size_t i = 0;
    for (; n - i >= 4 * lanes; i += 4 * lanes) add_four(x + i);
    for (; n - i >= lanes; i += lanes) a = larger<T>(a, magnitudes(x + i));
    exact::bits_of<T> each[lanes], result = n != i ? scalar::amax(x + i, n - i, false) : exact::bits_of<T>{0};
    store(each, larger<T>(larger<T>(a, b), larger<T>(c, d)));
    for (std::size_t k = 0; k < lanes; ++k) result = each[k] > result ? each[k] : result;
    return result;
  }
};

template <class T>
OCTET_ROW exact::bits_of<T> amax(const T* in, std::size_t n, bool streams) {
  if constexpr (!is_vector_source<T>) {
    return scalar::amax(in, n, streams);
  } else {
    largest_of<T> largest;
    constexpr std::size_t four = 4 * largest_of<T>::lanes;
    std::size_t i = 0;
    if (streams)
      for (; n - i >= four; i += four) largest.add_four_ahead(in + i);
    return largest.with_run(in + i, n - i);
  }
}

template <class T>
OCTET_ROW exact::bits_of<T> finite_amax(const T* in, std::size_t n, std::size_t& not_finite) {
  std::size_t i = 0;
  exact::bits_of<T> result = 0;
  if constexpr (is_vector_source<T>) {
    constexpr std::size_t lanes = 32 / sizeof(T);
    const __m256i limit =
        sizeof(T) == 4 ? _mm256_set1_epi32(infinity) : _mm256_set1_epi16(static_cast<short>(float_traits<T>::infinity));
    __m256i largest = _mm256_setzero_si256();
    for (; n - i >= lanes; i += lanes) {
      const __m256i a = magnitudes(in + i);
      const __m256i finite = sizeof(T) == 4 ? _mm256_cmpgt_epi32(limit, a) : _mm256_cmpgt_epi16(limit, a);
      const auto bytes = static_cast<unsigned>(_mm256_movemask_epi8(finite));
      not_finite += static_cast<std::size_t>(__builtin_popcount(~bytes)) / sizeof(T);
      largest = larger<T>(largest, _mm256_and_si256(a, finite));
    }
    exact::bits_of<T> each[lanes];
    store(each, largest);
    for (std::size_t k = 0; k < lanes; ++k) result = each[k] > result ? each[k] : result;
  }
  const exact::bits_of<T> rest = scalar::finite_amax(in + i, n - i, not_finite);
  return rest > result ? rest : result;
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

// The floats nearest to x / d, given d and r, the float nearest to 1 / d. With q = x r, off by at most two units of the
// last place, x - q d is exact in a fused multiply-add and q + (x - q d) r rounds correctly (Markstein 1990, theorem
// 1), where all of it is normal and rounds to nearest even. The empty statement hides from a compiler that may
// rearrange sums where q comes from.
OCTET_ROW_INLINE __m256 corrected(__m256 q, __m256 x, __m256 d, __m256 r) {
  __asm__("" : "+x"(q));
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(q, d, x), r, q);
}

// x / d, or x r, of magnitudes x up to most() = largest * d, which saturate from there on, for a moderate d and r
// (is_moderate). Raised to 2^-70, a magnitude stays far below half a unit, and every step is normal.
template <class F, bool Divides>
struct moderate_scale {
  __m256 d, r;

  OCTET_ROW_INLINE moderate_scale(__m256 stored, __m256 multiplier) : d(stored), r(multiplier) {}
  OCTET_ROW_INLINE explicit moderate_scale(group_scale s)
      : moderate_scale(_mm256_set1_ps(s.stored.value()), _mm256_set1_ps(s.multiplier.value())) {}
  OCTET_ROW_INLINE __m256i most() const {
    return _mm256_castps_si256(_mm256_mul_ps(d, _mm256_set1_ps(octet::decode(F::from_bits(F::max_code)))));
  }
  OCTET_ROW_INLINE __m256i limit() const { return most(); }
  OCTET_ROW_INLINE __m256i operator()(__m256i a) const {
    const __m256 x = _mm256_castsi256_ps(_mm256_max_epi32(a, _mm256_castps_si256(_mm256_set1_ps(0x1p-70f))));
    const __m256 q = _mm256_mul_ps(x, r);
    return _mm256_castps_si256(Divides ? corrected(q, x, d, r) : q);
  }
};

// The same for a normal d that is not moderate: x and d are both multiplied by 2^83 or 2^-83 (exactly: with 2^-83 x is
// raised to 2^9 before, which divided by 2^40 is still below half a unit), which makes d moderate enough. A subnormal
// x, which the machine may take for 0 or take long to multiply, is the integer of its bits times 2^-149. `correction`
// is the reciprocal of the moderate d, or 0 where x r is wanted.
template <class F>
struct any_scale {
  __m256 unit, unit_of_subnormal, least, highest, d, r, correction;

  OCTET_ROW_INLINE explicit any_scale(group_scale s) {
    const float stored = s.stored.value(), multiplier = s.multiplier.value();
    const bool up = bit_cast<std::uint32_t>(stored) < bit_cast<std::uint32_t>(1.0f);
    unit = _mm256_set1_ps(up ? 0x1p83f : 0x1p-83f);
    unit_of_subnormal = _mm256_set1_ps(up ? 0x1p-66f : 0.0f);
    least = _mm256_set1_ps(up ? 0.0f : 0x1p9f);
    d = _mm256_mul_ps(_mm256_set1_ps(stored), unit);
    r = _mm256_mul_ps(_mm256_set1_ps(multiplier), _mm256_set1_ps(up ? 0x1p-83f : 0x1p83f));
    highest = _mm256_mul_ps(d, _mm256_set1_ps(octet::decode(F::from_bits(F::max_code))));
    correction = s.divides ? r : _mm256_setzero_ps();
  }
  OCTET_ROW_INLINE __m256i limit() const { return _mm256_set1_epi32(infinity); }
  OCTET_ROW_INLINE __m256i most() const { return _mm256_set1_epi32(magnitude_bits); }
  OCTET_ROW_INLINE __m256i operator()(__m256i a) const {
    const __m256 subnormal = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), a));
    const __m256 raised = _mm256_castsi256_ps(_mm256_max_epi32(a, _mm256_castps_si256(least)));
    const __m256 units = _mm256_blendv_ps(unit, unit_of_subnormal, subnormal);
    const __m256 value = _mm256_blendv_ps(raised, _mm256_cvtepi32_ps(a), subnormal);
    const __m256i scaled = _mm256_castps_si256(_mm256_mul_ps(value, units));
    const __m256 x = _mm256_castsi256_ps(_mm256_min_epi32(scaled, _mm256_castps_si256(highest)));
    return _mm256_castps_si256(corrected(_mm256_mul_ps(x, r), x, d, correction));
  }
};

template <class Scale, class F, class T>
OCTET_ROW_INLINE encoding<F, true, Scale, T> quantizer(const T* in, F* out, group_scale s) {
  return {in, out, Scale(s)};
}

template <class F, class T>
OCTET_ROW void quantize(const T* in, F* out, std::size_t n, group_scale s, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (n == 0) return;
    if (is_normal(s) && scalar::rounds_to_nearest()) {
      if (!is_moderate(s)) return walk(quantizer<any_scale<F>>(in, out, s), n, streams);
      if (divides(s)) return walk(quantizer<moderate_scale<F, true>>(in, out, s), n, streams);
      return walk(quantizer<moderate_scale<F, false>>(in, out, s), n, streams);
    }
  }
  scalar::quantize(in, out, n, s, streams);
}

// Quantizes values from i on and takes the largest magnitude of as many of `next`: with Streams past the cache, which
// takes longer than the care; else quickly. Returns where care is needed, or where less than a step is left.
template <bool Streams, class Kernel, class T>
OCTET_ROW_LOOP std::size_t run_and_amax(const Kernel& k, std::size_t i, std::size_t n, const T* next,
                                        largest_of<T>& found) {
  largest_of<T> largest = found;
  for (; n - i >= 64; i += 64) {
    for (std::size_t part = i; part < i + 64; part += 4 * largest.lanes) {
      if constexpr (Streams)
        largest.add_four_ahead(next + part);
      else
        largest.add_four(next + part);
    }
    if constexpr (Streams) {
      k.template careful<true>(i);
      k.template careful<true>(i + 32);
    } else if (!k.quick(i) || !k.quick(i + 32)) {
      break;
    }
  }
  if constexpr (Streams) _mm_sfence();
  found = largest;
  return i;
}

template <class Kernel, class T>
OCTET_ROW_INLINE exact::bits_of<T> walk_and_amax(const Kernel& k, std::size_t n, const T* next, std::size_t next_n,
                                                 bool streams) {
  const std::size_t both = (n < next_n ? n : next_n) / 64 * 64;
  largest_of<T> largest;
  std::size_t i = 0;
  // Stores past the cache end with a fence, which short runs are not worth.
  if (streams && both >= 1024 && reinterpret_cast<std::uintptr_t>(k.out) % 64 == 0)
    i = run_and_amax<true>(k, 0, both, next, largest);
  while (i < both) {
    i = run_and_amax<false>(k, i, both, next, largest);
    const std::size_t end = both - i < careful_for ? both : i + careful_for;
    careful_run(k, i, end);
    for (; i < end; i += 4 * largest.lanes) largest.add_four(next + i);
  }
  walk_from(k, i, n);
  return largest.with_run(next + i, next_n - i);
}

template <class F, class T>
OCTET_ROW exact::bits_of<T> quantize_and_amax(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                              std::size_t next_n, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (n != 0 && is_moderate(s) && scalar::rounds_to_nearest()) {
      if (divides(s)) return walk_and_amax(quantizer<moderate_scale<F, true>>(in, out, s), n, next, next_n, streams);
      return walk_and_amax(quantizer<moderate_scale<F, false>>(in, out, s), n, next, next_n, streams);
    }
  }
  avx2::quantize(in, out, n, s, streams);
  return avx2::amax(next, next_n, streams);
}

// Whether all of 32 floats are in the range.
OCTET_ROW_INLINE bool within32(const floats32& x, float_range range) {
  const __m256i least = _mm256_set1_epi32(static_cast<int>(range.first));
  const __m256i most = _mm256_set1_epi32(static_cast<int>(range.end) - 1);
  const words32 w = {{_mm256_castps_si256(x.at[0]), _mm256_castps_si256(x.at[1]), _mm256_castps_si256(x.at[2]),
                      _mm256_castps_si256(x.at[3])}};
  const __m256i below =
      _mm256_or_si256(_mm256_or_si256(_mm256_cmpgt_epi32(least, w.at[0]), _mm256_cmpgt_epi32(least, w.at[1])),
                      _mm256_or_si256(_mm256_cmpgt_epi32(least, w.at[2]), _mm256_cmpgt_epi32(least, w.at[3])));
  return !any(_mm256_or_si256(below, _mm256_cmpgt_epi32(merged_max(w), most)));
}
OCTET_ROW_INLINE floats32 load_floats(const float* p) {
  return {{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), _mm256_loadu_ps(p + 16), _mm256_loadu_ps(p + 24)}};
}

// 32 values, each by a scale of its own; false where a scale is not moderate.
template <class F, bool Divides, class T>
OCTET_ROW_INLINE bool quantize_each32(const T* in, F* out, const float* stored, const float* multipliers) {
  const floats32 d = load_floats(stored), r = load_floats(multipliers);
  if (!within32(d, moderate) || !within32(r, moderate)) return false;
  const words32 x = words_in_order(in), a = magnitudes32(x);
  const moderate_scale<F, Divides> s0(d.at[0], r.at[0]), s1(d.at[1], r.at[1]), s2(d.at[2], r.at[2]),
      s3(d.at[3], r.at[3]);
  const words32 scaled = {{s0(_mm256_min_epi32(a.at[0], s0.most())), s1(_mm256_min_epi32(a.at[1], s1.most())),
                           s2(_mm256_min_epi32(a.at[2], s2.most())), s3(_mm256_min_epi32(a.at[3], s3.most()))}};
  const __m256i code =
      _mm256_blendv_epi8(codes32<F, float>(scaled, pack_signs(x)), _mm256_set1_epi8(static_cast<char>(F::nan_code)),
                         above32<float>(a, _mm256_set1_epi32(infinity)));
  store(out, to_memory_order<float>(code));
  return true;
}
// Whole blocks, and a last one that overlaps the one before.
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_each_all(const T* in, F* out, std::size_t n, group_scales s) {
  const float* stored = reinterpret_cast<const float*>(s.stored);
  const float* multipliers = reinterpret_cast<const float*>(s.multipliers);
  if (n < 32) return scalar::quantize_each(in, out, n, s);
  for (std::size_t i = 0;; i = i + 64 <= n ? i + 32 : n - 32) {
    if (!quantize_each32<F, Divides>(in + i, out + i, stored + i, multipliers + i))
      scalar::quantize_each(in + i, out + i, 32, {s.stored + i, s.multipliers + i, s.divides});
    if (i + 32 == n) return;
  }
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

// -- Products -------------------------------------------------------------------------------------------------------

// Formats of 8 bits whose codes, moved up, are halves of another bias with the same finite values, infinities included:
// F16C widens them, subnormals too, whatever the control register says. A NaN code that is no NaN as a half makes every
// sum NaN that it takes part in, so it is looked for beside. The other formats are the scalar row's.
template <class F>
inline constexpr bool multiplies_halves = F::width == 8 &&
                                          ((F::exponent_bits < 5 && !F::has_infinity) ||
                                           (F::exponent_bits == 5 && F::special_codes == octet::encoding::ieee));

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

OCTET_ROW_INLINE void add_multiple(float* y, __m256 a, __m256 w) {
  _mm256_storeu_ps(y, _mm256_fmadd_ps(a, w, _mm256_loadu_ps(y)));
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
      add_multiple(y + i, factor, _mm256_mul_ps(w.at[0], unit));
      add_multiple(y + i + 8, factor, _mm256_mul_ps(w.at[1], unit));
      add_multiple(y + i + 16, factor, _mm256_mul_ps(w.at[2], unit));
      add_multiple(y + i + 24, factor, _mm256_mul_ps(w.at[3], unit));
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
  static constexpr reduction<T> reduces = {&avx2::amax<T>, &avx2::finite_amax<T>, &avx2::amax_each<T>};
  template <class F, class T>
  static constexpr scaled_conversion<F, T> scales = {&avx2::quantize<F, T>,        &avx2::quantize_and_amax<F, T>,
                                                     &avx2::quantize_each<F, T>,   &avx2::dequantize<F, T>,
                                                     &avx2::dequantize_each<F, T>, &avx2::measure<F, T>};
  template <class F, class T>
  static constexpr product<F, T> products = {&scalar::arrange<T>, &avx2::multiply<F>, &avx2::dot<F, T>, &avx2::axpy<F>};
};

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet
#undef OCTET_ROW
#undef OCTET_ROW_LOOP
#undef OCTET_ROW_INLINE
#undef OCTET_TARGET
#endif
