// The row of x86-64 machines with AVX-512 (F, BW, DQ, VL, VBMI) and GFNI: Ice Lake, Sapphire Rapids, Zen 4 and later.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_X86_64
#include <cpuid.h>
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

// The target of this row, and the kinds of functions it holds.
#define OCTET_TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")))
#define OCTET_ROW_INLINE OCTET_TARGET __attribute__((always_inline)) inline
#define OCTET_ROW [[maybe_unused]] OCTET_TARGET static
#define OCTET_ROW_LOOP [[maybe_unused]] OCTET_TARGET static __attribute__((noinline))

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx512 {

// Every rounding below, but those of the sums of products, is embedded in its instruction, so the control register has
// no say; subnormal floats, which it could flush, are either far below half a unit of every format or are left to the
// scalar row.
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

OCTET_ROW_INLINE __m256i load_halves(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// The lanes that are NaN, by their class: -ffast-math folds comparisons with NaN, this it knows nothing of.
OCTET_ROW_INLINE __mmask16 nan16(__m512 x) { return _mm512_fpclass_ps_mask(x, 0x81); }

// The lanes where one of two is NaN. In assembly for the same reason: one instruction for two vectors.
OCTET_ROW_INLINE __mmask16 nan_in_either(__m512 x, __m512 y) {
  __mmask16 lanes;
  __asm__("vcmpunordps %2, %1, %0" : "=k"(lanes) : "v"(x), "v"(y));
  return lanes;
}

// 64 lanes of bytes from four times 16 lanes of words.
OCTET_ROW_INLINE __mmask64 join64(__mmask16 a, __mmask16 b, __mmask16 c, __mmask16 d) {
  return _mm512_kunpackd(_mm512_kunpackw(d, c), _mm512_kunpackw(b, a));
}

// 64 values as floats, 16 a vector. Written out four times wherever they are made: at -O2 g++ leaves a loop of four a
// loop, and its array in memory.
struct floats64 {
  __m512 at[4];
};
template <class T>
OCTET_ROW_INLINE floats64 load64(const T* x, span64 s) {
  return {{load16(x, s.part(0)), load16(x + 16, s.part(1)), load16(x + 32, s.part(2)), load16(x + 48, s.part(3))}};
}

// All of 64 values in the order that is cheapest: bfloat16 as the even and the odd ones of 32, twice.
template <class T>
OCTET_ROW_INLINE floats64 load64(const T* x) {
  if constexpr (std::is_same_v<T, float>) {
    return {{_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16), _mm512_loadu_ps(x + 32), _mm512_loadu_ps(x + 48)}};
  } else if constexpr (is_bfloat16<T>) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
    const __m512i v = _mm512_loadu_si512(x), w = _mm512_loadu_si512(x + 32);
    return {{_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)), _mm512_castsi512_ps(_mm512_and_si512(v, upper)),
             _mm512_castsi512_ps(_mm512_slli_epi32(w, 16)), _mm512_castsi512_ps(_mm512_and_si512(w, upper))}};
  } else {
    return {{_mm512_cvtph_ps(load_halves(x)), _mm512_cvtph_ps(load_halves(x + 16)),
             _mm512_cvtph_ps(load_halves(x + 32)), _mm512_cvtph_ps(load_halves(x + 48))}};
  }
}

template <std::size_t Bytes>
OCTET_ROW_INLINE void prefetch_lines(const void* p) {
  for (std::size_t b = 0; b < Bytes; b += 64) _mm_prefetch(static_cast<const char*>(p) + b, _MM_HINT_T0);
}

// 64 bytes to memory, or past the cache.
template <bool Streams>
OCTET_ROW_INLINE void store64(void* out, __m512i v) {
  if constexpr (Streams)
    _mm512_stream_si512(static_cast<__m512i*>(out), v);
  else
    _mm512_storeu_si512(out, v);
}
template <bool Streams>
OCTET_ROW_INLINE void store_floats(float* out, const floats64& x) {
  store64<Streams>(out, _mm512_castps_si512(x.at[0]));
  store64<Streams>(out + 16, _mm512_castps_si512(x.at[1]));
  store64<Streams>(out + 32, _mm512_castps_si512(x.at[2]));
  store64<Streams>(out + 48, _mm512_castps_si512(x.at[3]));
}
// Those of 64 codes, 64 16-bit words and 64 floats that lie within the span; or past the cache all of them.
template <bool Streams>
OCTET_ROW_INLINE void store_codes(void* out, __m512i v, span64 s) {
  if constexpr (Streams)
    store64<true>(out, v);
  else
    _mm512_mask_storeu_epi8(out, s.lanes, v);
}
template <bool Streams, class T>
OCTET_ROW_INLINE void store_words(T* out, __m512i v, __m512i w, span64 s) {
  if constexpr (Streams) {
    store64<true>(out, v);
    store64<true>(out + 32, w);
  } else {
    _mm512_mask_storeu_epi16(out, static_cast<__mmask32>(s.lanes), v);
    _mm512_mask_storeu_epi16(out + 32, static_cast<__mmask32>(s.lanes >> 32), w);
  }
}
template <bool Streams>
OCTET_ROW_INLINE void store_floats(float* out, const floats64& x, span64 s) {
  if constexpr (Streams) return store_floats<true>(out, x);
  _mm512_mask_storeu_ps(out, s.part(0), x.at[0]);
  _mm512_mask_storeu_ps(out + 16, s.part(1), x.at[1]);
  _mm512_mask_storeu_ps(out + 32, s.part(2), x.at[2]);
  _mm512_mask_storeu_ps(out + 48, s.part(3), x.at[3]);
}

// -- Walks ----------------------------------------------------------------------------------------------------------

// A kernel writes 64 results from 64 values at a time:
//   in, out                    where they are
//   quick(i)                   values i to i + 63; true if none of them needed more care than this takes
//   careful<Streams>(i, span)  those within the span, whatever the values are; with Streams all, and past the cache
// After values that need care (NaN for the most part) a walk stays careful for a while: a branch that goes one way for
// long costs little, one that NaN here and there decides costs more than the care. The loops are functions of their
// own, so that each is compiled once and none has another's code in the way of its registers.
// Blocks from i on; returns the first that needs care, or where less than a block is left.
template <class Kernel>
OCTET_ROW_LOOP std::size_t quick_run(const Kernel& k, std::size_t i, std::size_t n) {
  for (; n - i >= 64; i += 64)
    if (!k.quick(i)) break;
  return i;
}
template <class Kernel>
OCTET_ROW_LOOP void careful_run(const Kernel& k, std::size_t i, std::size_t n) {
  for (; n - i >= 64; i += 64) k.template careful<false>(i, span64(64));
  if (i < n) k.template careful<false>(i, span64(n - i));
}

// Elements i to n - 1.
template <class Kernel>
OCTET_ROW_INLINE void walk_from(const Kernel& k, std::size_t i, std::size_t n) {
  while (i < n) {
    if (n - i >= 64) i = quick_run(k, i, n);
    const std::size_t end = n - i < careful_for ? n : i + careful_for;
    if (i < end) careful_run(k, i, end);
    i = end;
  }
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
        k.template careful<true>(stream, span64(64));
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
    careful_run(k, 0, i);
    i = page_run(k, i, n);
  }
  walk_from(k, i, n);
}

// -- Encoding -------------------------------------------------------------------------------------------------------

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

// -- Decoding -------------------------------------------------------------------------------------------------------

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

// The largest magnitudes so far, in four vectors: a dependent chain would wait for each maximum.
template <class T>
struct largest_of {
  static constexpr std::size_t lanes = 64 / sizeof(T);
  static constexpr std::uint32_t all = static_cast<std::uint32_t>(~std::uint64_t{0} >> (64 - lanes));
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;

  OCTET_ROW_INLINE largest_of() {}
  OCTET_ROW_INLINE void add_four(const T* x) {  // 4 * lanes values
    a = larger(a, x, all);
    b = larger(b, x + lanes, all);
    c = larger(c, x + 2 * lanes, all);
    d = larger(d, x + 3 * lanes, all);
  }
  OCTET_ROW_INLINE void add_four_ahead(const T* x) {
    prefetch_lines<256>(somewhere(x, stream_ahead));
    add_four(x);
  }
  OCTET_ROW_INLINE void add_run(const T* x, std::size_t n) {
    std::size_t i = 0;
    for (; n - i >= 4 * lanes; i += 4 * lanes) add_four(x + i);
    for (; n - i >= lanes; i += lanes) a = larger(a, x + i, all);
    if (i < n) b = larger(b, x + i, (std::uint32_t{1} << (n - i)) - 1);
  }
  OCTET_ROW_INLINE exact::bits_of<T> value() const {
    if constexpr (sizeof(T) == 4) {
      return _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_max_epu32(a, b), _mm512_max_epu32(c, d)));
    } else {
      const __m512i words = _mm512_max_epu16(_mm512_max_epu16(a, b), _mm512_max_epu16(c, d));
      const __m512i low = _mm512_and_si512(words, _mm512_set1_epi32(0xFFFF)), high = _mm512_srli_epi32(words, 16);
      return static_cast<exact::bits_of<T>>(_mm512_reduce_max_epu32(_mm512_max_epu32(low, high)));
    }
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
    largest.add_run(in + i, n - i);
    return largest.value();
  }
}

template <class T>
OCTET_ROW exact::bits_of<T> finite_amax(const T* in, std::size_t n, std::size_t& not_finite) {
  if constexpr (!is_vector_source<T>) {
    return scalar::finite_amax(in, n, not_finite);
  } else {
    largest_of<T> largest;
    constexpr std::size_t lanes = largest_of<T>::lanes;
    for (std::size_t i = 0; i < n; i += lanes) {
      const std::uint32_t some = n - i < lanes ? (std::uint32_t{1} << (n - i)) - 1 : largest.all;
      const __m512i a = larger(_mm512_setzero_si512(), in + i, some);
      if constexpr (sizeof(T) == 4) {
        const __mmask16 finite = _mm512_cmplt_epu32_mask(a, _mm512_set1_epi32(0x7F800000));
        not_finite += lanes - static_cast<std::size_t>(__builtin_popcount(finite));
        largest.a = _mm512_mask_max_epu32(largest.a, finite, largest.a, a);
      } else {
        const __m512i limit = _mm512_set1_epi16(static_cast<short>(float_traits<T>::infinity));
        const __mmask32 finite = _mm512_cmplt_epu16_mask(a, limit);
        not_finite += lanes - static_cast<std::size_t>(__builtin_popcount(finite));
        largest.a = _mm512_mask_max_epu16(largest.a, finite, largest.a, a);
      }
    }
    return largest.value();
  }
}

template <class T>
OCTET_ROW void amax_each(const T* in, exact::bits_of<T>* largest, std::size_t n) {
  if constexpr (!is_vector_source<T>) {
    scalar::amax_each(in, largest, n);
  } else {
    constexpr std::size_t lanes = largest_of<T>::lanes;
    std::size_t i = 0;
    for (; n - i >= lanes; i += lanes)
      _mm512_storeu_si512(largest + i, larger(_mm512_loadu_si512(largest + i), in + i, largest_of<T>::all));
    if (i == n) return;
    const std::uint32_t rest = (std::uint32_t{1} << (n - i)) - 1;
    if constexpr (sizeof(T) == 4) {
      const __mmask16 some = static_cast<__mmask16>(rest);
      _mm512_mask_storeu_epi32(largest + i, some, larger(_mm512_maskz_loadu_epi32(some, largest + i), in + i, rest));
    } else {
      _mm512_mask_storeu_epi16(largest + i, rest, larger(_mm512_maskz_loadu_epi16(rest, largest + i), in + i, rest));
    }
  }
}

// -- Scaled conversion ----------------------------------------------------------------------------------------------

// The float nearest to x / d, given d and r, the float nearest to 1 / d. With q = x r, off by at most two units of the
// last place, x - q d is exact in a fused multiply-add and q + (x - q d) r rounds correctly (Markstein 1990, theorem
// 1), where all of it is normal.
OCTET_ROW_INLINE __m512 corrected(__m512 q, __m512 x, __m512 d, __m512 r) {
  return _mm512_fmadd_round_ps(_mm512_fnmadd_round_ps(q, d, x, nearest), r, q, nearest);
}

OCTET_ROW_INLINE floats64 times(const floats64& x, const floats64& y) {
  return {{_mm512_mul_round_ps(x.at[0], y.at[0], nearest), _mm512_mul_round_ps(x.at[1], y.at[1], nearest),
           _mm512_mul_round_ps(x.at[2], y.at[2], nearest), _mm512_mul_round_ps(x.at[3], y.at[3], nearest)}};
}

// x / d, or x r, for a moderate d and r (is_moderate). The magnitude of x is first brought between 2^-70 and largest *
// d: a smaller one is far below half a unit, one from there on saturates, so the codes stay the same, and every step is
// normal. NaN is taken care of by its x.
template <class F, bool Divides>
struct moderate_scale {
  __m512 d, r, most;

  OCTET_ROW_INLINE moderate_scale(__m512 stored, __m512 multiplier)
      : d(stored),
        r(multiplier),
        most(_mm512_mul_round_ps(d, _mm512_set1_ps(octet::decode(F::from_bits(F::max_code))), nearest)) {}
  OCTET_ROW_INLINE explicit moderate_scale(group_scale s)
      : moderate_scale(_mm512_set1_ps(s.stored.value()), _mm512_set1_ps(s.multiplier.value())) {}
  OCTET_ROW_INLINE __m512 operator()(__m512 x) const {
    const __m512 raised = _mm512_range_ps(x, _mm512_set1_ps(0x1p-70f), greatest_magnitude);
    const __m512 a = _mm512_range_ps(raised, most, least_magnitude);
    const __m512 q = _mm512_mul_round_ps(a, r, nearest);
    if constexpr (Divides) return corrected(q, a, d, r);
    return q;
  }
};

// The same for a normal d that is not moderate: x and d are both multiplied by 2^83 or 2^-83 (exactly: with 2^-83 x is
// raised to 2^9 before, which divided by 2^40 is still below half a unit), which makes d moderate enough. A subnormal
// x, which the machine may take for 0 or take long to multiply, is the integer of its bits times 2^-149. `correction`
// is the reciprocal of the moderate d, or 0 where x r is wanted.
template <class F>
struct any_scale {
  __m512 unit, unit_of_subnormal, least, most, d, r, correction;

  OCTET_ROW_INLINE explicit any_scale(group_scale s) {
    const float stored = s.stored.value(), multiplier = s.multiplier.value();
    const bool up = bit_cast<std::uint32_t>(stored) < bit_cast<std::uint32_t>(1.0f);
    unit = _mm512_set1_ps(up ? 0x1p83f : 0x1p-83f);
    unit_of_subnormal = _mm512_set1_ps(up ? 0x1p-66f : 0.0f);
    least = _mm512_set1_ps(up ? 0.0f : 0x1p9f);
    d = _mm512_mul_round_ps(_mm512_set1_ps(stored), unit, nearest);
    r = _mm512_mul_round_ps(_mm512_set1_ps(multiplier), _mm512_set1_ps(up ? 0x1p-83f : 0x1p83f), nearest);
    most = _mm512_mul_round_ps(d, _mm512_set1_ps(octet::decode(F::from_bits(F::max_code))), nearest);
    correction = s.divides ? r : _mm512_setzero_ps();
  }
  OCTET_ROW_INLINE __m512 operator()(__m512 x) const {
    const __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000));
    const __m512i a = _mm512_andnot_si512(sign, _mm512_castps_si512(x));
    const __mmask16 subnormal = _mm512_cmplt_epu32_mask(a, _mm512_set1_epi32(0x00800000));
    const __m512 units = _mm512_mask_mov_ps(unit, subnormal, unit_of_subnormal);
    const __m512 raised = _mm512_range_ps(_mm512_castsi512_ps(a), least, greatest_magnitude);
    const __m512 value = _mm512_mask_cvt_roundepi32_ps(raised, subnormal, a, nearest);
    const __m512 scaled = _mm512_range_ps(_mm512_mul_round_ps(value, units, nearest), most, least_magnitude);
    const __m512 result = corrected(_mm512_mul_round_ps(scaled, r, nearest), scaled, d, correction);
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(x), _mm512_castps_si512(result), 0xCA));
  }
};

template <class Scale, class F, class T>
OCTET_ROW_INLINE encoding<F, true, Scale, T> quantizer(const T* in, F* out, group_scale s) {
  return {in, out, Scale(s)};
}

template <class F, class T>
OCTET_ROW void quantize(const T* in, F* out, std::size_t n, group_scale s, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (is_moderate(s)) {
      if (divides(s)) return walk(quantizer<moderate_scale<F, true>>(in, out, s), n, streams);
      return walk(quantizer<moderate_scale<F, false>>(in, out, s), n, streams);
    }
    if (is_normal(s)) return walk(quantizer<any_scale<F>>(in, out, s), n, streams);
  }
  scalar::quantize(in, out, n, s, streams);
}

// Quantizes values from i on and takes the largest magnitude of as many of `next`: with Streams past the cache, which
// takes longer than the care; else quickly. Returns where care is needed, or where less than a step is left.
template <bool Streams, class Kernel, class T>
OCTET_ROW_LOOP std::size_t run_and_amax(const Kernel& k, std::size_t i, std::size_t n, const T* next,
                                        largest_of<T>& found) {
  constexpr std::size_t four = 4 * largest_of<T>::lanes;
  largest_of<T> largest = found;
  for (; n - i >= four; i += four) {
    if constexpr (Streams)
      largest.add_four_ahead(next + i);
    else
      largest.add_four(next + i);
    bool good = true;
    for (std::size_t part = i; part < i + four; part += 64) {
      if constexpr (Streams)
        k.template careful<true>(part, span64(64));
      else
        good = k.quick(part) && good;
    }
    if (!good) break;
  }
  if constexpr (Streams) _mm_sfence();
  found = largest;
  return i;
}

template <class Kernel, class T>
OCTET_ROW_INLINE exact::bits_of<T> walk_and_amax(const Kernel& k, std::size_t n, const T* next, std::size_t next_n,
                                                 bool streams) {
  const std::size_t both = n < next_n ? n : next_n;
  largest_of<T> largest;
  std::size_t i = 0;
  // Stores past the cache end with a fence, which short runs are not worth.
  if (streams && both >= 1024 && reinterpret_cast<std::uintptr_t>(k.out) % 64 == 0)
    i = run_and_amax<true>(k, 0, both, next, largest);
  for (std::size_t end = 0; both - i >= 4 * largest.lanes; i = end) {
    i = run_and_amax<false>(k, i, both, next, largest);
    end = both - i < careful_for ? both : i + careful_for;
    careful_run(k, i, end);
    largest.add_run(next + i, end - i);
  }
  walk_from(k, i, n);
  largest.add_run(next + i, next_n - i);
  return largest.value();
}

template <class F, class T>
OCTET_ROW exact::bits_of<T> quantize_and_amax(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                              std::size_t next_n, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (is_moderate(s)) {
      if (divides(s)) return walk_and_amax(quantizer<moderate_scale<F, true>>(in, out, s), n, next, next_n, streams);
      return walk_and_amax(quantizer<moderate_scale<F, false>>(in, out, s), n, next, next_n, streams);
    }
  }
  avx512::quantize(in, out, n, s, streams);
  return avx512::amax(next, next_n, streams);
}

// The floats that are in the range; and whether all are of 64 that lie within the span.
OCTET_ROW_INLINE __mmask16 within16(__m512 x, float_range range) {
  const __m512i above = _mm512_sub_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(range.first)));
  return _mm512_cmplt_epu32_mask(above, _mm512_set1_epi32(static_cast<int>(range.end - range.first)));
}
OCTET_ROW_INLINE bool within64(const floats64& x, float_range range, span64 s) {
  const std::uint64_t lanes =
      join64(within16(x.at[0], range), within16(x.at[1], range), within16(x.at[2], range), within16(x.at[3], range));
  return (s.lanes & ~lanes) == 0;
}

// 16 values, each by a scale of its own.
template <class F, bool Divides>
OCTET_ROW_INLINE rounded16 scaled_each16(__m512 x, __m512 d, __m512 r) {
  return round16<F>(moderate_scale<F, Divides>(d, r)(x));
}
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_each_all(const T* in, F* out, std::size_t n, group_scales scales) {
  for (std::size_t i = 0; i < n; i += 64) {
    const span64 s(n - i);
    const floats64 d = load64(as_floats(scales.stored + i), s);
    const floats64 r = load64(reinterpret_cast<const float*>(scales.multipliers + i), s);
    if (within64(d, moderate, s) && within64(r, moderate, s)) {
      const floats64 x = load64(in + i, s);
      __m512i codes = merge64<F>(scaled_each16<F, Divides>(x.at[0], d.at[0], r.at[0]),
                                 scaled_each16<F, Divides>(x.at[1], d.at[1], r.at[1]),
                                 scaled_each16<F, Divides>(x.at[2], d.at[2], r.at[2]),
                                 scaled_each16<F, Divides>(x.at[3], d.at[3], r.at[3]), of_runs);
      if (has_nan(x)) codes = with_nan<F>(codes, x);
      _mm512_mask_storeu_epi8(out + i, s.lanes, codes);
    } else {
      scalar::quantize_each(in + i, out + i, n - i < 64 ? n - i : 64,
                            {scales.stored + i, scales.multipliers + i, scales.divides});
    }
  }
}

template <class F, class T>
OCTET_ROW void quantize_each(const T* in, F* out, std::size_t n, group_scales s) {
  if constexpr (!is_vector_source<T> || !is_moderate_format<F>)
    scalar::quantize_each(in, out, n, s);
  else if (s.divides)
    quantize_each_all<F, true>(in, out, n, s);
  else
    quantize_each_all<F, false>(in, out, n, s);
}

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

OCTET_ROW_INLINE floats64 all64(float x) {
  const __m512 v = _mm512_set1_ps(x);
  return {{v, v, v, v}};
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

// The double nearest to a / b; a is 0 or has 26 bits, b 24. With y = (1 + e + e^2) / b, e from an estimate of 1 / b
// that is good to 2^-14, y b is 1 to within 2^-41, and q = a y is a / b to within as much. a - q b is a multiple of the
// product of the last places of q and b, and less than 2^38 times that, so it is exact in a fused multiply-add; and q +
// (a - q b) y, before it is rounded, is a / b to within 2^-81. A midpoint of doubles has 54 bits, so it is no quotient
// of these: its product with b, 78 bits at most, differs from a by a unit or more of its last place, 2^-78 of a. So
// nothing is rounded to the other side.
OCTET_ROW_INLINE __m512d quotient8(__m512d a, __m512d b) {
  const __m512d estimate = _mm512_rcp14_pd(b), one = _mm512_set1_pd(1);
  const __m512d e = _mm512_fnmadd_round_pd(estimate, b, one, nearest);
  const __m512d y = _mm512_fmadd_round_pd(estimate, _mm512_fmadd_round_pd(e, e, e, nearest), estimate, nearest);
  const __m512d q = _mm512_mul_round_pd(a, y, nearest);
  return _mm512_fmadd_round_pd(_mm512_fnmadd_round_pd(q, b, a, nearest), y, q, nearest);
}

// The sums of row_losses, lane by lane in the order of the elements. The squares are exact, so a fused multiply-add is
// the sum of one. The rounding is always to nearest.
struct loss_sums {
  __m512d signal, error, relative;

  OCTET_ROW_INLINE explicit loss_sums(const row_losses& sums)
      : signal(_mm512_loadu_pd(sums.signal)),
        error(_mm512_loadu_pd(sums.error)),
        relative(_mm512_loadu_pd(sums.relative)) {}
  OCTET_ROW_INLINE void store(row_losses& sums) const {
    _mm512_storeu_pd(sums.signal, signal);
    _mm512_storeu_pd(sums.error, error);
    _mm512_storeu_pd(sums.relative, relative);
  }
  OCTET_ROW_INLINE void add8(__m256 x, __m256 decoded, __mmask8 compared) {
    const __m512i magnitude = _mm512_set1_epi64(0x7FFFFFFFFFFFFFFF), bits_26 = _mm512_set1_epi64(-(1 << 27));
    const __m512d value = _mm512_cvtps_pd(x);
    const __m512i off =
        _mm512_and_si512(bits_26, _mm512_castpd_si512(_mm512_sub_round_pd(_mm512_cvtps_pd(decoded), value, nearest)));
    const __m512d a = _mm512_castsi512_pd(_mm512_and_si512(off, magnitude));
    const __m512d b = _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(value), magnitude));
    signal = _mm512_mask3_fmadd_round_pd(b, b, signal, compared, nearest);
    error = _mm512_mask3_fmadd_round_pd(a, a, error, compared, nearest);
    relative = _mm512_mask_add_round_pd(relative, compared, relative, quotient8(a, b), nearest);
  }
  OCTET_ROW_INLINE void add16(__m512 x, __m512 decoded, __mmask16 compared) {
    add8(_mm512_castps512_ps256(x), _mm512_castps512_ps256(decoded), static_cast<__mmask8>(compared));
    add8(_mm512_extractf32x8_ps(x, 1), _mm512_extractf32x8_ps(decoded, 1), static_cast<__mmask8>(compared >> 8));
  }
};

// What 16 values are, and what their codes decode to; and of 64.
struct classes16 {
  __mmask16 nonzero, finite, clipped, decoded_zero, decoded_finite;
};
template <class F, bool Divides>
OCTET_ROW_INLINE classes16 classes_of(__m512 x, __m512 decoded, const moderate_scale<F, Divides>& scaled) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  return {_mm512_test_epi32_mask(_mm512_castps_si512(x), magnitude),
          static_cast<__mmask16>(~_mm512_fpclass_ps_mask(x, 0x99)), overflow16<F>(scaled(x)),
          _mm512_testn_epi32_mask(_mm512_castps_si512(decoded), magnitude),
          static_cast<__mmask16>(~_mm512_fpclass_ps_mask(decoded, 0x99))};
}
OCTET_ROW_INLINE std::size_t count_of(std::uint64_t lanes) {
  return static_cast<std::size_t>(__builtin_popcountll(lanes));
}

// Whether one of 64 values is subnormal: widening could flush it. Less one, their magnitudes are the least of all as
// unsigned integers, and that of zero the largest.
OCTET_ROW_INLINE __m512i magnitudes_less_1(__m512 x) {
  const __m512i a = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
  return _mm512_sub_epi32(a, _mm512_set1_epi32(1));
}
OCTET_ROW_INLINE bool has_subnormal(const floats64& x) {
  const __m512i a = _mm512_min_epu32(magnitudes_less_1(x.at[0]), magnitudes_less_1(x.at[1]));
  const __m512i b = _mm512_min_epu32(magnitudes_less_1(x.at[2]), magnitudes_less_1(x.at[3]));
  return _mm512_cmplt_epu32_mask(_mm512_min_epu32(a, b), _mm512_set1_epi32(0x007FFFFF)) != 0;
}

// Elements 0, 8, 16, ... of these are of lane 0. Values and codes outside a span are zeros, which count for nothing.
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void measure_all(const T* in, const F* codes, std::size_t n, group_scale s, row_losses& losses) {
  const floats64 d = all64(s.stored.value());
  moderate_scale<F, Divides> scales(s);
  scales.most = _mm512_set1_ps(0x1p80f);  // divided by 2^40 it still overflows
  loss_sums sums(losses);
  for (std::size_t i = 0; i < n; i += 64) {
    const span64 span(n - i);
    const floats64 x = load64(in + i, span);
    if (has_subnormal(x)) {
      sums.store(losses);
      scalar::measure(in + i, codes + i, n - i < 64 ? n - i : 64, 0, s, losses);
      sums = loss_sums(losses);
      continue;
    }
    const floats64 c = decode64(codes + i, span);
    const floats64 y = times(c, d);
    const classes16 k0 = classes_of<F, Divides>(x.at[0], y.at[0], scales);
    const classes16 k1 = classes_of<F, Divides>(x.at[1], y.at[1], scales);
    const classes16 k2 = classes_of<F, Divides>(x.at[2], y.at[2], scales);
    const classes16 k3 = classes_of<F, Divides>(x.at[3], y.at[3], scales);
    const std::uint64_t nonzero = join64(k0.nonzero, k1.nonzero, k2.nonzero, k3.nonzero);
    const std::uint64_t finite = join64(k0.finite, k1.finite, k2.finite, k3.finite);
    const std::uint64_t clipped = join64(k0.clipped, k1.clipped, k2.clipped, k3.clipped);
    const std::uint64_t decoded_zero = join64(k0.decoded_zero, k1.decoded_zero, k2.decoded_zero, k3.decoded_zero);
    const std::uint64_t decoded_finite =
        join64(k0.decoded_finite, k1.decoded_finite, k2.decoded_finite, k3.decoded_finite);
    const std::uint64_t compared = nonzero & finite & decoded_finite;
    losses.not_finite += count_of(~finite);
    losses.clipped += count_of(finite & clipped);
    losses.flushed += count_of(nonzero & decoded_zero);
    losses.poisoned += count_of(finite & ~decoded_finite);
    losses.compared += count_of(compared);
    sums.add16(x.at[0], y.at[0], static_cast<__mmask16>(compared));
    sums.add16(x.at[1], y.at[1], static_cast<__mmask16>(compared >> 16));
    sums.add16(x.at[2], y.at[2], static_cast<__mmask16>(compared >> 32));
    sums.add16(x.at[3], y.at[3], static_cast<__mmask16>(compared >> 48));
  }
  sums.store(losses);
}

template <class F, class T>
OCTET_ROW void measure(const T* in, const F* codes, std::size_t n, std::size_t first, group_scale s, row_losses& sums) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (is_moderate(s)) {
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

template <class F>
OCTET_ROW_INLINE byte_vectors decoder_of() {
  const byte_vectors v = vectors_of<F, float>();
  return {{in_register(v.low[0]), in_register(v.low[1])},
          {in_register(v.high[0]), in_register(v.high[1])},
          in_register(v.sign),
          in_register(v.bit5),
          in_register(v.upper_half)};
}

// Element 4 l + j of vector 2 h + o is code 16 l + 8 h + 2 j + o. A NaN stays some NaN.
template <class F>
OCTET_ROW_INLINE floats64 floats_of(const byte_vectors& with, __m512i v) {
  two_bytes b = look_up<F, low_bytes_repeat<F, float>()>(with, v);
  if constexpr (F::width == 8 && !F::has_negative_zero) b = with_nan_bytes(b, nan_lanes<F>(v));
  return to_floats(b, with.upper_half);
}

template <class F>
OCTET_ROW_INLINE floats64 floats_in_order(const byte_vectors& with, const F* codes, span64 s) {
  return floats_of<F>(with, load_codes(codes, s, for_dwords));
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
OCTET_ROW_INLINE void add_product(column_sums<M>& sums, const floats64* w, std::size_t m, const float* column) {
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
OCTET_ROW_INLINE void add_products(column_sums<M>& sums, const floats64* w, const float* x, std::size_t stride,
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
  const byte_vectors with = decoder_of<F>();
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
      floats64 blocks[rows];
      const std::size_t whole = c1 - (c1 - c0) % 64;
      std::size_t c = c0;
      while (c < whole) {
        const std::size_t near = ahead.near(c), stop = least(whole, ahead.until(c));
        for (; c < stop; c += 64, at += 64) {
          _mm_prefetch(somewhere(first + c, near), _MM_HINT_T0);
          _mm_prefetch(somewhere(first + c, ahead.far), _MM_HINT_T1);
          blocks[0] = floats_of<F>(with, in_register(_mm512_loadu_si512(first + c)));
          if constexpr (rows == 2) {
            _mm_prefetch(somewhere(second + c, near), _MM_HINT_T0);
            _mm_prefetch(somewhere(second + c, ahead.far), _MM_HINT_T1);
            blocks[1] = floats_of<F>(with, in_register(_mm512_loadu_si512(second + c)));
          }
          add_products(sums, blocks, at, x.stride, columns);
        }
      }
      if (c < c1) {
        const span64 s(c1 - c);
        blocks[0] = floats_of<F>(with, _mm512_maskz_loadu_epi8(s.lanes, first + c));
        if constexpr (rows == 2) blocks[1] = floats_of<F>(with, _mm512_maskz_loadu_epi8(s.lanes, second + c));
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
OCTET_ROW_INLINE void add_block(__m512* sums, const byte_vectors& with, const F* codes, const T* x, span64 s) {
  const floats64 w = floats_in_order(with, codes, s);
  sums[0] = _mm512_fmadd_ps(w.at[0], product_source(x, s.part(0)), sums[0]);
  sums[1] = _mm512_fmadd_ps(w.at[1], product_source(x + 16, s.part(1)), sums[1]);
  sums[2] = _mm512_fmadd_ps(w.at[2], product_source(x + 32, s.part(2)), sums[2]);
  sums[3] = _mm512_fmadd_ps(w.at[3], product_source(x + 48, s.part(3)), sums[3]);
}
template <class F, class T>
OCTET_ROW float dot(const F* codes, const T* x, std::size_t n) {
  const byte_vectors with = decoder_of<F>();
  __m512 sums[4] = {};
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) add_block(sums, with, codes + i, x + i, span64(64));
  if (i < n) add_block(sums, with, codes + i, x + i, span64(n - i));
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

template <class F>
OCTET_ROW_INLINE void axpy_block(__m512 a, const byte_vectors& with, const F* codes, float* y, span64 s) {
  const floats64 w = floats_in_order(with, codes, s), x = load64(y, s);
  const floats64 sums = {{_mm512_fmadd_ps(a, w.at[0], x.at[0]), _mm512_fmadd_ps(a, w.at[1], x.at[1]),
                          _mm512_fmadd_ps(a, w.at[2], x.at[2]), _mm512_fmadd_ps(a, w.at[3], x.at[3])}};
  store_floats<false>(y, sums, s);
}
template <class F>
OCTET_ROW void axpy(float a, const F* codes, float* y, std::size_t n) {
  const __m512 factor = _mm512_set1_ps(a);
  const byte_vectors with = decoder_of<F>();
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) axpy_block(factor, with, codes + i, y + i, span64(64));
  if (i < n) axpy_block(factor, with, codes + i, y + i, span64(n - i));
}

// -- The line-up ----------------------------------------------------------------------------------------------------

OCTET_LOCAL bool runs_here() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("gfni");
}

struct row {
  static constexpr const char* name = "avx512";
  static constexpr bool (*runs_here)() = &avx512::runs_here;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&avx512::encode<F, T, false>, &avx512::decode<F, T>};
  template <class T>
  static constexpr reduction<T> reduces = {&avx512::amax<T>, &avx512::finite_amax<T>, &avx512::amax_each<T>};
  template <class F, class T>
  static constexpr scaled_conversion<F, T> scales = {&avx512::quantize<F, T>,        &avx512::quantize_and_amax<F, T>,
                                                     &avx512::quantize_each<F, T>,   &avx512::dequantize<F, T>,
                                                     &avx512::dequantize_each<F, T>, &avx512::measure<F, T>};
  template <class F, class T>
  static constexpr product<F, T> products = {&avx512::arrange<T>, &avx512::multiply<F>, &avx512::dot<F, T>,
                                             &avx512::axpy<F>};
};

#if OCTET_HAS_AVX512FP16
// Sapphire Rapids and later encode 16-bit values in lanes of 16 bits.
// Not every compiler has a name for the feature.
OCTET_LOCAL bool runs_here_with_fp16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return runs_here() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 23 & 1) != 0;
}

struct row_with_fp16 : row {
  static constexpr const char* name = "avx512_fp16";
  static constexpr bool (*runs_here)() = &avx512::runs_here_with_fp16;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&avx512::encode<F, T, true>, &avx512::decode<F, T>};
};
#endif

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet
#undef OCTET_ROW
#undef OCTET_ROW_LOOP
#undef OCTET_ROW_INLINE
#undef OCTET_TARGET
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
