// The walk over the tiles of a matrix: what quantizing, dequantizing and measuring do once a granularity is a tiling.
// SPDX-License-Identifier: MIT
#pragma once

#include "bulk.hpp"
#include "granularity.hpp"
#include "matrix.hpp"
#include "statistics.hpp"

namespace octet {
inline namespace v0 {
namespace detail {

// The arguments were checked by the caller (quantize.hpp). All of it is by tilings, so a program that uses several
// granularities has it once.

// simd::streams of the work on all elements of a matrix, in and out.
template <class A, class B>
OCTET_HOST_INLINE bool streams(const matrix_view<A>& m, const matrix_view<B>&) {
  return simd::streams(m.rows * m.cols * (sizeof(A) + sizeof(B)));
}

// Rows without gaps between them are one long row where all of them are one tile, or each is cut into equal ones.
template <class A, class B>
OCTET_HOST_INLINE void join_rows(tiling& t, matrix_view<A>& a, matrix_view<B>& b) {
  const std::size_t n = a.rows * a.cols;
  const bool no_gaps = a.row_stride == a.cols && b.row_stride == b.cols;
  const bool one_tile = t.rows.count(a.rows) == 1 && t.cols.count(a.cols) == 1;
  const bool equal_parts = t.rows.size == 1 && t.cols.first == 0 && a.cols % t.cols.size == 0;
  if (!no_gaps || (!one_tile && !equal_parts)) return;
  a = {a.data, 1, n};
  b = {b.data, 1, n};
  if (one_tile) t = per_tensor{}.tiles(1, n);
}

// Narrow tiles are worked on many at a time, so that memory is read along its rows: those one column wide so many, the
// others as runs, so many, as long as their part of a row stays in the first cache and all their rows in the second.
inline constexpr std::size_t columns_at_once = 2048, runs_at_once = 64;
inline constexpr std::size_t elements_of_a_row = 4096, elements_at_once = 1 << 18;

// A tile, or neighbouring small ones: the (first) number, and the rows and columns.
struct block {
  std::size_t number, r0, r1, c0, c1;
  OCTET_HOST_INLINE std::size_t width() const { return c1 - c0; }
};

// How many whole tiles, `rows` high and `size` columns wide, are worked on at a time where `room` columns are left. Fewer
// than two: they are not narrow, or their width is none that the kernels take.
OCTET_HOST_INLINE constexpr std::size_t runs_in(std::size_t rows, std::size_t size, std::size_t room) {
  if (!simd::is_run_width(size)) return 0;
  const std::size_t row = simd::least(elements_of_a_row, elements_at_once / rows);
  return simd::least(simd::least(row, room) / size, runs_at_once);
}

// Calls visit.tile(block) for every tile, or visit.columns(block) for tiles one column wide, or visit.runs(block, size)
// for whole narrow ones.
template <class Visitor>
OCTET_HOST_INLINE void for_each_tile(const tiling& t, std::size_t rows, std::size_t cols, Visitor& visit) {
  const std::size_t tiles_a_row = t.cols.count(cols);
  for (std::size_t r0 = 0, r1 = 0; r0 < rows && cols != 0; r0 = r1) {
    const std::size_t tile_row = t.rows.tile(r0);
    r1 = t.rows.end(tile_row, rows);
    for (std::size_t c0 = 0, c1 = 0; c0 < cols; c0 = c1) {
      const std::size_t tile_col = t.cols.tile(c0), number = tile_row * tiles_a_row + tile_col;
      if (t.cols.size == 1) {
        c1 = cols - c0 < columns_at_once ? cols : c0 + columns_at_once;
        visit.columns(block{number, r0, r1, c0, c1});
        continue;
      }
      c1 = t.cols.end(tile_col, cols);
      const std::size_t runs = c1 - c0 == t.cols.size ? runs_in(r1 - r0, t.cols.size, cols - c0) : 0;
      if (runs > 1) {
        c1 = c0 + runs * t.cols.size;
        visit.runs(block{number, r0, r1, c0, c1}, t.cols.size);
      } else {
        visit.tile(block{number, r0, r1, c0, c1});
      }
    }
  }
}

// Calls visit.run(tile, next) for every tile of a tiling one row high, in the order of memory; after the last tile
// comes an empty one.
template <class Visitor>
OCTET_HOST_INLINE void for_each_run(const tiling& t, std::size_t rows, std::size_t cols, Visitor& visit) {
  block b{0, 0, 1, 0, t.cols.end(0, cols)};
  while (b.r0 < rows && cols != 0) {
    block next{b.number + 1, b.r0, b.r1, b.c1, b.c1};
    if (b.c1 == cols) next = {b.number + 1, b.r1, b.r1 + 1, 0, 0};
    if (next.r0 < rows) next.c1 = t.cols.end(t.cols.tile(next.c0), cols);
    visit.run(b, next.r0 < rows ? next : block{b.number, b.r0, b.r1, b.c1, b.c1});
    b = next;
  }
}

// The codes of a tile whose scales are known.
template <class F, class T>
struct encode_tiles {
  matrix_view<const T> in;
  matrix_view<F> codes;
  const simd::scaled_conversion<F, T>& kernels;
  bool streams;

  OCTET_HOST_INLINE void tile(const block& b, group_scale s) const {
    for (std::size_t r = b.r0; r < b.r1; ++r)
      kernels.quantize(in.row(r) + b.c0, codes.row(r) + b.c0, b.width(), s, streams);
  }
  OCTET_HOST_INLINE void columns(const block& b, simd::group_scales s) const {
    for (std::size_t r = b.r0; r < b.r1; ++r)
      kernels.quantize_each(in.row(r) + b.c0, codes.row(r) + b.c0, b.width(), s);
  }
  OCTET_HOST_INLINE void runs(const block& b, std::size_t size, simd::group_scales s) const {
    for (std::size_t r = b.r0; r < b.r1; ++r)
      kernels.quantize_runs(in.row(r) + b.c0, codes.row(r) + b.c0, size, b.width() / size, s, streams);
  }
};

template <class F, class T>
struct quantize_found {
  encode_tiles<F, T> encode;
  const simd::reduction<T>& kernels;
  const scale_rule& rule;
  descale* descales;
  std::size_t not_finite;
  exact::bits_of<T> ahead;  // the largest magnitude of the next run
  std::size_t counted;      // not_finite before that run was looked at

  OCTET_HOST_INLINE exact::bits_of<T> finite_amax(const block& b) {
    exact::bits_of<T> largest = 0;
    for (std::size_t r = b.r0; r < b.r1; ++r) {
      const exact::bits_of<T> row = kernels.finite_amax(encode.in.row(r) + b.c0, b.width(), not_finite);
      largest = row > largest ? row : largest;
    }
    return largest;
  }
  // The amax of a tile from the bits of its largest magnitude; NaN and infinity take a second look.
  OCTET_HOST_INLINE float amax_from(exact::bits_of<T> largest, const block& b) {
    if (largest >= float_traits<T>::infinity) {
      const exact::bits_of<T> finite = finite_amax(b);
      if (rule.on_nonfinite == nonfinite::ignore) largest = finite;
    }
    return magnitude_of<T>(largest);
  }
  // The scales of neighbouring tiles, each `size` columns wide. multipliers: one a tile, written.
  OCTET_HOST_INLINE simd::group_scales scales_from(const exact::bits_of<T>* largest, const block& b, std::size_t size,
                                                   scale* multipliers) {
    static_assert(runs_at_once <= columns_at_once, "");
    float amax[columns_at_once];
    const std::size_t count = b.width() / size;
    for (std::size_t i = 0, c = b.c0; i < count; ++i, c += size)
      amax[i] = amax_from(largest[i], {b.number + i, b.r0, b.r1, c, c + size});
    encode.kernels.scales_of(amax, count, rule, descales + b.number, multipliers);
    return {descales + b.number, multipliers, rule.on_the_way_in == scaling::divide};
  }

  OCTET_HOST_INLINE void tile(const block& b) {
    exact::bits_of<T> largest = 0;
    for (std::size_t r = b.r0; r < b.r1; ++r) {
      const exact::bits_of<T> row = kernels.amax(encode.in.row(r) + b.c0, b.width(), encode.streams);
      largest = row > largest ? row : largest;
    }
    const group_scale s = scale_of<F>(amax_from(largest, b), rule);
    descales[b.number] = s.stored;
    encode.tile(b, s);
  }

  // Tiles one row high: each is quantized while the amax of the next is found. Where NaN and infinities are ignored, and
  // there were some, the next one's is that of its finite values from the start, instead of by a second look.
  OCTET_HOST_INLINE void run(const block& b, const block& next) {
    if (b.number == 0) ahead = kernels.amax(encode.in.row(b.r0) + b.c0, b.width(), encode.streams);
    const group_scale s = scale_of<F>(amax_from(ahead, b), rule);
    const bool strays = not_finite != counted && rule.on_nonfinite == nonfinite::ignore;
    counted = not_finite;
    descales[b.number] = s.stored;
    if (strays || next.width() == 0) {
      encode.tile(b, s);
      ahead = finite_amax(next);
    } else {
      ahead = encode.kernels.quantize_and_amax(encode.in.row(b.r0) + b.c0, encode.codes.row(b.r0) + b.c0, b.width(), s,
                                               encode.in.row(next.r0) + next.c0, next.width(), encode.streams);
    }
  }

  OCTET_HOST_INLINE void columns(const block& b) {
    exact::bits_of<T> largest[columns_at_once] = {};
    scale multipliers[columns_at_once];
    for (std::size_t r = b.r0; r < b.r1; ++r) kernels.amax_each(encode.in.row(r) + b.c0, largest, b.width());
    encode.columns(b, scales_from(largest, b, 1, multipliers));
  }

  OCTET_HOST_INLINE void runs(const block& b, std::size_t size) {
    exact::bits_of<T> largest[runs_at_once] = {}, of_row[runs_at_once];
    scale multipliers[runs_at_once];
    const std::size_t count = b.width() / size;
    for (std::size_t r = b.r0; r < b.r1; ++r) {
      kernels.amax_runs(encode.in.row(r) + b.c0, size, count, of_row, encode.streams);
      for (std::size_t i = 0; i < count; ++i) largest[i] = of_row[i] > largest[i] ? of_row[i] : largest[i];
    }
    encode.runs(b, size, scales_from(largest, b, size, multipliers));
  }
};

template <class F, class T>
struct quantize_given {
  encode_tiles<F, T> encode;
  scaling how;
  const descale* descales;

  OCTET_HOST_INLINE simd::group_scales scales_of(const block& b, std::size_t count, scale* multipliers) const {
    for (std::size_t i = 0; i < count; ++i) multipliers[i] = scale_of(descales[b.number + i], how).multiplier;
    return {descales + b.number, multipliers, how == scaling::divide};
  }
  OCTET_HOST_INLINE void tile(const block& b) const { encode.tile(b, scale_of(descales[b.number], how)); }
  OCTET_HOST_INLINE void columns(const block& b) const {
    scale multipliers[columns_at_once];
    encode.columns(b, scales_of(b, b.width(), multipliers));
  }
  OCTET_HOST_INLINE void runs(const block& b, std::size_t size) const {
    scale multipliers[runs_at_once];
    encode.runs(b, size, scales_of(b, b.width() / size, multipliers));
  }
};

template <class F, class T>
struct dequantize_given {
  matrix_view<const F> codes;
  matrix_view<T> out;
  const simd::scaled_conversion<F, T>& kernels;
  bool streams;
  const descale* descales;

  OCTET_HOST_INLINE void tile(const block& b) const {
    for (std::size_t r = b.r0; r < b.r1; ++r)
      kernels.dequantize(codes.row(r) + b.c0, out.row(r) + b.c0, b.width(), descales[b.number], streams);
  }
  OCTET_HOST_INLINE void columns(const block& b) const {
    for (std::size_t r = b.r0; r < b.r1; ++r)
      kernels.dequantize_each(codes.row(r) + b.c0, out.row(r) + b.c0, b.width(), descales + b.number);
  }
  OCTET_HOST_INLINE void runs(const block& b, std::size_t size) const {
    for (std::size_t r = b.r0; r < b.r1; ++r)
      for (std::size_t c = b.c0, i = b.number; c < b.c1; c += size, ++i)
        kernels.dequantize(codes.row(r) + c, out.row(r) + c, size, descales[i], streams);
  }
};

// nonfinite::reject, before anything is written.
template <class T>
OCTET_HOST_INLINE void require_finite(const char* where, const matrix_view<const T>& in) {
  std::size_t not_finite = 0;
  const bool streams = simd::streams(in.rows * in.cols * sizeof(T));
  for (std::size_t r = 0; r < in.rows && in.cols != 0; ++r)
    if (simd::reduces<T>().amax(in.row(r), in.cols, streams) >= float_traits<T>::infinity)
      simd::reduces<T>().finite_amax(in.row(r), in.cols, not_finite);
  if (not_finite != 0) reject(where, not_finite);
}

// -- The work, whatever the granularity was -----------------------------------------------------------------------

template <class F, class T>
OCTET_LOCAL std::size_t quantize_tiles(tiling t, matrix_view<const T> in, const scale_rule& rule, matrix_view<F> codes,
                                       descale* descales) {
  const bool streams = detail::streams(in, codes);
  join_rows(t, in, codes);
  quantize_found<F, T> visit{{in, codes, simd::scales<F, T>(), streams}, simd::reduces<T>(), rule, descales, 0, 0, 0};
  if (t.rows.size == 1 && t.cols.size != 1 && runs_in(1, t.cols.size, in.cols) < 2)
    for_each_run(t, in.rows, in.cols, visit);
  else
    for_each_tile(t, in.rows, in.cols, visit);
  return visit.not_finite;
}

template <class F, class T>
OCTET_LOCAL void quantize_tiles(tiling t, matrix_view<const T> in, const descale* descales, matrix_view<F> codes,
                                scaling how) {
  const bool streams = detail::streams(in, codes);
  join_rows(t, in, codes);
  const quantize_given<F, T> visit{{in, codes, simd::scales<F, T>(), streams}, how, descales};
  for_each_tile(t, in.rows, in.cols, visit);
}

template <class F, class T>
OCTET_LOCAL void dequantize_tiles(tiling t, matrix_view<const F> codes, const descale* descales, matrix_view<T> out) {
  const bool streams = detail::streams(codes, out);
  join_rows(t, codes, out);
  const dequantize_given<F, T> visit{codes, out, simd::scales<F, T>(), streams, descales};
  for_each_tile(t, out.rows, out.cols, visit);
}

template <class F, class T>
OCTET_LOCAL statistics measure_tiles(tiling t, matrix_view<const T> in, matrix_view<const F> codes,
                                     const descale* descales, scaling how) {
  const simd::scaled_conversion<F, T>& kernels = simd::scales<F, T>();
  const std::size_t tiles_a_row = t.cols.count(in.cols);
  statistics total;
  for (std::size_t r = 0; r < in.rows && in.cols != 0; ++r) {
    simd::row_losses row;
    const descale* of_row = descales + t.rows.tile(r) * tiles_a_row;
    for (std::size_t c0 = 0, c1 = 0; c0 < in.cols; c0 = c1) {
      const std::size_t tile_col = t.cols.tile(c0);
      c1 = t.cols.end(tile_col, in.cols);
      kernels.measure(in.row(r) + c0, codes.row(r) + c0, c1 - c0, c0, scale_of(of_row[tile_col], how), row);
    }
    total.add_row(row, in.cols);
  }
  return total;
}

}  // namespace detail
}  // namespace v0
}  // namespace octet
