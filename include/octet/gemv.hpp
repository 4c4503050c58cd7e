// Products with FP8 weights that are decoded in registers: y = W x for up to eight columns; dot and axpy for attention.
// SPDX-License-Identifier: MIT
#pragma once

#include "quantize.hpp"

namespace octet {
inline namespace v0 {

// In all of these: F is any signed format; codes are decoded exactly (subnormals, NaN, infinities), whatever the
// rounding mode, a flush-to-zero mode or -ffast-math; sums run in float. They are done in the calling thread and
// allocate nothing.
//
// How exact a sum is. Of n products (n codes, t of the granularity's tiles) it differs from the exact sum by at most
//   g * (the sum of |descale * code * x|), g = (n / 8 + 6 t + 16) * 2^-24,
// since it runs in at least 8 partial sums, and twice that in rounding modes other than to nearest. What underflows is
// not in that bound: products code * x below 2^(-111 - F::bias), subnormal x, and subnormal x times a descale lose
// bits, or count for nothing in a flush-to-zero mode. The rows of kernels add in different orders, so their last bits
// differ. A NaN code makes its sum NaN; NaN and infinite x and infinite codes do what IEEE 754 says of the products. A
// sum before its descale is applied, that sum times 2^(F::bias - 15), and x times a descale must not exceed float's
// range.

namespace detail {

inline constexpr std::size_t most_columns = 8;

// Floats of arranged activations at a time: 32 KiB of the caller's stack, which the first-level cache holds.
inline constexpr std::size_t arranged_at_once = 8192;

// Where the descales are multiplied into the activations instead of into sums of products: for tiles so narrow that
// there would be a sum for little, and for those so high that each scaled activation serves many rows.
OCTET_HOST_INLINE constexpr bool scales_activations(const tiling& t, std::size_t cols, std::size_t columns) {
  return t.cols.count(cols) > 1 && (t.cols.size < 32 || t.rows.size >= 64 * columns);
}

// A chunk of columns, from `first` on, of which `arranged` floats are made.
struct column_chunk {
  std::size_t first, end, arranged;
  // The next one, of whole tiles if that is possible, with at most `most` floats, a multiple of 64.
  OCTET_HOST_INLINE column_chunk next(const cut& tiles, std::size_t cols, std::size_t most) const {
    column_chunk c{end, end, 0};
    while (c.end < cols) {
      const std::size_t tile_end = tiles.end(tiles.tile(c.end), cols), width = simd::padded(tile_end - c.end);
      if (width > most - c.arranged) {
        if (c.arranged == 0) c = {end, end + most, most};
        break;
      }
      c = {c.first, tile_end, c.arranged + width};
    }
    return c;
  }
};

// Floats a column, at most the room there is for it, such that the chunks of a row are about equally long.
OCTET_HOST_INLINE std::size_t floats_a_chunk(const cut& tiles, std::size_t cols, std::size_t columns) {
  const std::size_t room = arranged_at_once / columns / simd::product_block * simd::product_block;
  std::size_t all = 0;
  for (std::size_t c = 0, end = 0; c < cols; c = end) {
    end = tiles.end(tiles.tile(c), cols);
    all += simd::padded(end - c);
  }
  const std::size_t chunks = (all + room - 1) / room;
  return simd::padded((all + chunks - 1) / chunks);
}

template <class F, class T>
struct multiplication {
  matrix_view<const F> codes;
  const descale* descales;
  tiling tiles;
  matrix_view<const T> x;
  matrix_view<float> y;
};

template <class F, class T>
OCTET_LOCAL void multiply(const multiplication<F, T>& p) {
  alignas(64) float arranged[arranged_at_once];
  const simd::product<F, T>& kernels = simd::products<F, T>();
  const cut& cols = p.tiles.cols;
  const std::size_t most = floats_a_chunk(cols, p.codes.cols, p.x.rows);
  for (column_chunk c{0, 0, 0}; c.end < p.codes.cols;) {
    c = c.next(cols, p.codes.cols, most);
    const cut tiles{cols.size, (c.first + cols.first) % cols.size};
    for (std::size_t m = 0; m < p.x.rows; ++m) {
      float* out = arranged + m * c.arranged;
      for (std::size_t i = 0, end = 0, n = c.end - c.first; i < n; out += simd::padded(end - i), i = end) {
        end = tiles.end(tiles.tile(i), n);
        kernels.arrange(p.x.row(m) + c.first + i, end - i, out);
      }
    }
    const simd::weights<F> w{p.codes.data + c.first,
                             p.codes.rows,
                             c.end - c.first,
                             p.codes.row_stride,
                             p.descales + cols.tile(c.first),
                             cols.count(p.codes.cols),
                             {p.tiles.rows, tiles}};
    kernels.multiply(w, {arranged, c.arranged, p.x.rows}, p.y.data, p.y.row_stride, c.first != 0);
  }
}

// x times the descales of columns first to end - 1, each rounded to float, as arranged floats.
template <class F, class T>
OCTET_HOST_INLINE void arrange_scaled(const T* x, const descale* descales, const cut& tiles, const column_chunk& c,
                                      std::size_t cols, float* out) {
  const simd::product<F, float>& kernels = simd::products<F, float>();
  std::size_t tile = tiles.tile(c.first), tile_end = tiles.end(tile, cols);
  for (std::size_t i = c.first; i < c.end; i += simd::product_block, out += simd::product_block) {
    float scaled[simd::product_block];
    const std::size_t end = c.end - i < simd::product_block ? c.end : i + simd::product_block;
    for (std::size_t k = i; k < end;) {
      const float d = descales[tile].value();
      for (const std::size_t stop = end < tile_end ? end : tile_end; k < stop; ++k) scaled[k - i] = to_source(x[k]) * d;
      if (k == tile_end && k < cols) tile_end = tiles.end(++tile, cols);
    }
    kernels.arrange(scaled, end - i, out);
  }
}

// The same, with the descales multiplied into the activations, once a row of tiles.
template <class F, class T>
OCTET_LOCAL void multiply_by_scaled(const multiplication<F, T>& p) {
  alignas(64) float arranged[arranged_at_once];
  const cut &rows = p.tiles.rows, &cols = p.tiles.cols;
  const cut whole{p.codes.cols, 0};
  const std::size_t most = floats_a_chunk(whole, p.codes.cols, p.x.rows);
  const descale one(1);
  for (std::size_t r0 = 0, r1 = 0; r0 < p.codes.rows; r0 = r1) {
    const std::size_t tile_row = rows.tile(r0);
    const descale* descales = p.descales + tile_row * cols.count(p.codes.cols);
    r1 = rows.end(tile_row, p.codes.rows);
    for (column_chunk c{0, 0, 0}; c.end < p.codes.cols;) {
      c = c.next(whole, p.codes.cols, most);
      for (std::size_t m = 0; m < p.x.rows; ++m)
        arrange_scaled<F>(p.x.row(m), descales, cols, c, p.codes.cols, arranged + m * c.arranged);
      const std::size_t width = c.end - c.first;
      const simd::weights<F> w{p.codes.row(r0) + c.first, r1 - r0, width, p.codes.row_stride, &one, 0,
                               {{r1 - r0, 0}, {width, 0}}};
      simd::products<F, T>().multiply(w, {arranged, c.arranged, p.x.rows}, p.y.data + r0, p.y.row_stride, c.first != 0);
    }
  }
}

}  // namespace detail

// Y = X W^T. w: codes [N, K] with any granularity. x: [M, K], 1 <= M <= 8. y: [M, N], written; may not overlap the
// others. For a range of rows pass w.row_range(first, count) and the columns of y from `first` on, as the matrix_view
// {y.data + first, M, count, y.row_stride}: so threads share the work; the sums stay the same to the bit. Descales are
// taken as they are and applied to the sum over a tile; those of blocks of many rows, and of tiles of less than 32
// columns, are multiplied into x instead, once a row of tiles (which takes time where that is one row, and narrow).
// Blocks are read 64 columns at a time: tiles of a multiple of 64 columns are best. Errors: shapes that do not fit,
// null pointers, overlap, and x without rows or with more than 8, before anything is written.
template <class F, class Granularity, class T>
OCTET_HOST_INLINE void gemv(const quantized_view<F, Granularity>& w, matrix_view<T> x, matrix_view<float> y) {
  using Value = std::remove_const_t<T>;
  constexpr const char* where = "gemv";
  detail::require_types<F, Value>();
  detail::require_matrix(where, "weights", "weights' row_stride", w.codes);
  detail::require_matrix(where, "x", "x's row_stride", x);
  detail::require_matrix(where, "y", "y's row_stride", y);
  detail::require_granularity(w.granularity);
  detail::require(x.rows >= 1, "octet::gemv: x has no rows");
  detail::require(x.rows <= detail::most_columns, where, "x has", x.rows, "rows, more than", detail::most_columns);
  detail::require(x.cols == w.codes.cols, where, "x has", x.cols, "columns, the weights", w.codes.cols);
  detail::require(y.rows == x.rows, where, "y has", y.rows, "rows, x", x.rows);
  detail::require(y.cols == w.codes.rows, where, "y has", y.cols, "columns, the weights' rows are", w.codes.rows);
  const std::size_t count = descale_count(w.granularity, w.codes.rows, w.codes.cols);
  detail::require_pointer(where, "the descale array", w.descales, count, "descales");
  detail::require_apart(where, "y at a distance of", w.codes, y.data, y.extent() * sizeof(float));
  detail::require_apart(where, "y at a distance of", x, y.data, y.extent() * sizeof(float));
  detail::require_apart(where, "the descale array at a distance of", y, w.descales, count * sizeof(descale));
  if (y.cols == 0) return;
  if (w.codes.cols == 0) {
    for (std::size_t m = 0; m < y.rows; ++m)
      for (std::size_t n = 0; n < y.cols; ++n) y(m, n) = 0;
    return;
  }
  const detail::multiplication<F, Value> p{w.codes, w.descales, w.granularity.tiles(w.codes.rows, w.codes.cols), x, y};
  if (detail::scales_activations(p.tiles, w.codes.cols, x.rows))
    detail::multiply_by_scaled(p);
  else
    detail::multiply(p);
}

// The same of the owning form.
template <class F, class Granularity, class T>
OCTET_HOST_INLINE void gemv(const quantized<F, Granularity>& w, matrix_view<T> x, matrix_view<float> y) {
  octet::gemv(w.view(), x, y);
}

// The sum of code * x, n of both; 0 for n = 0. The product of values that share a descale is this times
// descale.value(): the score of a query and a key of an FP8 cache. Errors: null pointers.
template <class F, class T, std::enable_if_t<is_fp8_v<F> && is_float_v<T>, int> = 0>
[[nodiscard]] OCTET_HOST_INLINE float dot(const F* codes, const T* x, std::size_t n) {
  detail::require_types<F, T>();
  detail::require_pointer("dot", "codes", codes, n, "codes");
  detail::require_pointer("dot", "x", x, n, "values");
  return simd::products<F, T>().dot(codes, x, n);
}

// y += a * code, n of both; may not overlap. For values that share a descale `a` is the weight times descale.value(): a
// value of an FP8 cache added to the output. Each sum is rounded once or, the product before, twice. A NaN code makes
// its own sum NaN. Errors: null pointers and overlap, before anything is written.
template <class F, std::enable_if_t<is_fp8_v<F>, int> = 0>
OCTET_HOST_INLINE void axpy(float a, const F* codes, float* y, std::size_t n) {
  detail::require_types<F, float>();
  detail::require_arrays("axpy", codes, y, n);
  simd::products<F, float>().axpy(a, codes, y, n);
}

}  // namespace v0
}  // namespace octet
