// Products of codes and activations in the AVX-512 row: gemv, dot and axpy.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include <utility>  // std::index_sequence

#include "../scalar.hpp"
#include "decode.hpp"
#include "memory.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx512 {

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

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
