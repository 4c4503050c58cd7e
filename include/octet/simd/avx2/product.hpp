// Products of codes and activations in the AVX2 row: gemv, dot and axpy.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include <cstring>
#include <utility>  // std::index_sequence

#include "../scalar.hpp"
#include "memory.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx2 {

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

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
