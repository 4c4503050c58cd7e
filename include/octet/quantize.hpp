// Scaled values: quantize a matrix with descales that are found or given, dequantize it, and measure what was lost.
// SPDX-License-Identifier: MIT
#pragma once

#include "bulk.hpp"
#include "granularity.hpp"
#include "matrix.hpp"
#include "statistics.hpp"

namespace octet {
inline namespace v0 {

// In all of these: matrices are row-major [rows, cols]; F is any signed format; T is float, octet::float16,
// octet::bfloat16 or another 16-bit float. The descales are the row-major array of the granularity's tiles, in the
// units of the data; value ~ code * descale. Codes are rounded to nearest even and saturate; NaN becomes the format's
// NaN. Shapes that do not fit, null pointers and overlapping arrays are reported as errors.hpp says, before anything is
// written.
//
// The work is done in the calling thread; threads share it by taking row ranges of their own. With descales found, cut
// only where no tile is cut (per_token, per_channel{0}, whole rows of blocks); with descales given, anywhere.

// A quantized matrix in the caller's memory: F codes, one descale a tile of the granularity.
template <class F, class Granularity>
struct quantized_view {
  matrix_view<const F> codes;
  const descale* descales;
  Granularity granularity;

  // Rows first to first + count - 1 of the same matrix, with the descales they use.
  OCTET_INLINE constexpr quantized_view row_range(std::size_t first, std::size_t count) const {
    const tiling t = granularity.tiles(codes.rows, codes.cols);
    return {codes.row_range(first, count), descales + t.rows.tile(first) * t.cols.count(codes.cols),
            granularity.from_row(first)};
  }
};

// Codes and descales that are there already, from a checkpoint say, as a quantized matrix.
template <class F, class Granularity>
[[nodiscard]] OCTET_INLINE constexpr quantized_view<std::remove_const_t<F>, Granularity> as_quantized(
    matrix_view<F> codes, const descale* descales, const Granularity& granularity) {
  return {codes, descales, granularity};
}

namespace detail {

// What the functions below take, said at compile time.
template <class F, class T>
OCTET_HOST_INLINE constexpr void require_types() {
  static_assert(is_fp8_v<F>, "the codes are octet::fp8 (and where they are written, not const)");
  static_assert(F::is_signed, "E8M0 holds scales, not scaled values");
  static_assert(!std::is_same_v<T, double>, "double: convert to float first");
  static_assert(is_float_v<T>, "the values are float or a 16-bit float; make yours one by octet::float_traits");
}

template <class Granularity>
OCTET_HOST_INLINE void require_granularity(const Granularity&) {}
OCTET_HOST_INLINE void require_granularity(const per_channel& g) {
  require(g.axis == 0 || g.axis == 1, "octet::per_channel: axis is neither 0 nor 1");
}

template <class A, class B, class Granularity>
OCTET_HOST_INLINE void require_matrices(const char* where, const matrix_view<A>& in, const matrix_view<B>& out,
                                        const Granularity& granularity, const descale* descales) {
  require_matrix(where, "input", "input row_stride", in);
  require_matrix(where, "output", "output row_stride", out);
  require_same_shape(where, in, "output has", out);
  require_granularity(granularity);
  require_pointer(where, "the descale array", descales, descale_count(granularity, in.rows, in.cols), "descales");
}

template <class A>
OCTET_HOST_INLINE void require_apart(const char* where, const char* what, const matrix_view<A>& in, const void* out,
                                     std::size_t out_bytes) {
  require_apart(where, what, in.data, in.extent() * sizeof(A), out, out_bytes);
}

// -- A walk over the tiles ------------------------------------------------------------------------------------------

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

// Small tiles are worked on many at a time: those one column wide so many, so that memory is read along its rows; those
// of a part of one row so many, of no more elements in all than stay in the first cache.
inline constexpr std::size_t columns_at_once = 256, runs_at_once = 64, elements_at_once = 4096;

// A tile, or neighbouring small ones: the (first) number, and the rows and columns.
struct block {
  std::size_t number, r0, r1, c0, c1;
  OCTET_HOST_INLINE std::size_t width() const { return c1 - c0; }
};

// How many whole runs `size` elements long, of which `room` elements hold some, are worked on at a time. Fewer than two:
// they are not small, or their size is none that the kernels take.
OCTET_HOST_INLINE constexpr std::size_t runs_in(std::size_t size, std::size_t room) {
  if (!simd::is_run_width(size)) return 0;
  const std::size_t most = elements_at_once / size < runs_at_once ? elements_at_once / size : runs_at_once;
  return room / size < most ? room / size : most;
}

// Calls visit.tile(block) for every tile, or visit.columns(block) for tiles one column wide, or visit.runs(block, size)
// for whole small tiles of one row.
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
      const bool whole_run = r1 - r0 == 1 && c1 - c0 == t.cols.size;
      const std::size_t runs = whole_run ? runs_in(t.cols.size, cols - c0) : 0;
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
    kernels.quantize_runs(in.row(b.r0) + b.c0, codes.row(b.r0) + b.c0, size, b.width() / size, s, streams);
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

  // Tiles one row high: each is quantized while the amax of the next is found. After one with NaN or infinities that is
  // the amax of finite values from the start, instead of a second look.
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
    exact::bits_of<T> largest[runs_at_once];
    scale multipliers[runs_at_once];
    kernels.amax_runs(encode.in.row(b.r0) + b.c0, size, b.width() / size, largest, encode.streams);
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
struct dequantize_tiles {
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
    for (std::size_t c = b.c0, i = b.number; c < b.c1; c += size, ++i)
      kernels.dequantize(codes.row(b.r0) + c, out.row(b.r0) + c, size, descales[i], streams);
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

}  // namespace detail

// Descales found. in: [rows, cols]. codes: [rows, cols]. descales: descale_count(granularity, rows, cols), written.
// Each tile's descale is scale_of<F>(its amax, rule); its codes are its values scaled as rule.on_the_way_in says. A
// tile is read twice (one that fits in the cache comes from memory once), and with nonfinite::reject the matrix once
// more before. Returns the number of NaN and infinite
// values. Source: OCP OFP8 1.0 (codes), OCP MX 1.0 6.3 (shared power-of-two scales).
template <class F, class T, class Granularity>
OCTET_HOST_INLINE std::size_t quantize_into(matrix_view<T> in, const Granularity& granularity, const scale_rule& rule,
                                            matrix_view<F> codes, descale* descales) {
  using Value = std::remove_const_t<T>;
  constexpr const char* where = "quantize_into";
  detail::require_types<F, Value>();
  detail::require_matrices(where, in, codes, granularity, descales);
  detail::require_rule(rule);
  const std::size_t descale_bytes = descale_count(granularity, in.rows, in.cols) * sizeof(descale);
  detail::require_apart(where, "output at a distance of", in, codes.data, codes.extent());
  detail::require_apart(where, "the descale array at a distance of", in, descales, descale_bytes);
  detail::require_apart(where, "the descale array at a distance of", codes, descales, descale_bytes);
  if (rule.on_nonfinite == nonfinite::reject) detail::require_finite<Value>(where, in);
  tiling t = granularity.tiles(in.rows, in.cols);
  const bool streams = detail::streams(in, codes);
  detail::join_rows(t, in, codes);
  detail::quantize_found<F, Value> visit{
      {in, codes, simd::scales<F, Value>(), streams}, simd::reduces<Value>(), rule, descales, 0, 0, 0};
  if (t.rows.size == 1 && t.cols.size != 1 && detail::runs_in(t.cols.size, in.cols) < 2)
    detail::for_each_run(t, in.rows, in.cols, visit);
  else
    detail::for_each_tile(t, in.rows, in.cols, visit);
  return visit.not_finite;
}

// Descales given: static scales, from a checkpoint or a calibration, each finite and above zero, else an error that
// gives its number. `how` is scaling::divide or scaling::multiply. Values beyond the largest code saturate; measure
// counts them.
template <class F, class T, class Granularity>
OCTET_HOST_INLINE void quantize_into(matrix_view<T> in, const Granularity& granularity, const descale* descales,
                                     matrix_view<F> codes, scaling how = scaling::divide) {
  using Value = std::remove_const_t<T>;
  constexpr const char* where = "quantize_into";
  detail::require_types<F, Value>();
  detail::require_matrices(where, in, codes, granularity, descales);
  const std::size_t count = descale_count(granularity, in.rows, in.cols);
  detail::require_usable("quantize_into: descales", descales, count);
  detail::require_apart(where, "output at a distance of", in, codes.data, codes.extent());
  detail::require_apart(where, "the descale array at a distance of", codes, descales, count * sizeof(descale));
  tiling t = granularity.tiles(in.rows, in.cols);
  const bool streams = detail::streams(in, codes);
  detail::join_rows(t, in, codes);
  const detail::quantize_given<F, Value> visit{{in, codes, simd::scales<F, Value>(), streams}, how, descales};
  detail::for_each_tile(t, in.rows, in.cols, visit);
}

// out = code * descale, rounded once to T, to nearest even. out: [rows, cols]. The descales are taken as they are: a
// NaN that quantize_into propagated makes its group NaN. For a range of rows pass q.row_range and the same rows of the
// output.
template <class F, class Granularity, class T>
OCTET_HOST_INLINE void dequantize_into(const quantized_view<F, Granularity>& q, matrix_view<T> out) {
  constexpr const char* where = "dequantize_into";
  detail::require_types<F, T>();
  detail::require_matrices(where, q.codes, out, q.granularity, q.descales);
  const std::size_t count = descale_count(q.granularity, out.rows, out.cols);
  detail::require_apart(where, "output at a distance of", q.codes, out.data, out.extent() * sizeof(T));
  detail::require_apart(where, "the descale array at a distance of", out, q.descales, count * sizeof(descale));
  matrix_view<const F> codes = q.codes;
  tiling t = q.granularity.tiles(out.rows, out.cols);
  const bool streams = detail::streams(codes, out);
  detail::join_rows(t, codes, out);
  const detail::dequantize_tiles<F, T> visit{codes, out, simd::scales<F, T>(), streams, q.descales};
  detail::for_each_tile(t, out.rows, out.cols, visit);
}

// What quantizing `in` to `q` lost; `how` says how the values were scaled, for the count of clipped values. The
// descales are taken as they are. Statistics of row ranges add up to those of the whole, to the bit.
template <class T, class F, class Granularity>
[[nodiscard]] OCTET_HOST_INLINE statistics measure(matrix_view<T> in, const quantized_view<F, Granularity>& q,
                                                   scaling how = scaling::divide) {
  using Value = std::remove_const_t<T>;
  detail::require_types<F, Value>();
  detail::require_matrix("measure", "input", "input row_stride", in);
  detail::require_matrix("measure", "the codes", "the codes' row_stride", q.codes);
  detail::require_same_shape("measure", in, "the codes have", q.codes);
  detail::require_granularity(q.granularity);
  detail::require_pointer("measure", "the descale array", q.descales, descale_count(q.granularity, in.rows, in.cols),
                          "descales");
  const simd::scaled_conversion<F, Value>& kernels = simd::scales<F, Value>();
  const tiling t = q.granularity.tiles(in.rows, in.cols);
  const std::size_t tiles_a_row = t.cols.count(in.cols);
  statistics total;
  for (std::size_t r = 0; r < in.rows && in.cols != 0; ++r) {
    simd::row_losses row;
    const descale* descales = q.descales + t.rows.tile(r) * tiles_a_row;
    for (std::size_t c0 = 0, c1 = 0; c0 < in.cols; c0 = c1) {
      const std::size_t tile_col = t.cols.tile(c0);
      c1 = t.cols.end(tile_col, in.cols);
      kernels.measure(in.row(r) + c0, q.codes.row(r) + c0, c1 - c0, c0, scale_of(descales[tile_col], how), row);
    }
    total.add_row(row, in.cols);
  }
  return total;
}

// A quantized matrix that owns its memory. Moves, does not copy; view() is of its memory, so not of a temporary's.
template <class F, class Granularity>
class quantized {
  F* codes_ = nullptr;
  descale* descales_ = nullptr;
  std::size_t rows_ = 0, cols_ = 0, not_finite_ = 0;
  Granularity granularity_;

 public:
  // Memory for [rows, cols]; codes and descales are not set.
  OCTET_HOST_INLINE quantized(std::size_t rows, std::size_t cols, const Granularity& granularity)
      : quantized(granularity) {
    detail::require(cols == 0 || rows <= static_cast<std::size_t>(-1) / 2 / cols, "quantized", "rows", rows,
                    "are too many for cols", cols);
    codes_ = new F[rows * cols];
    descales_ = new descale[descale_count(granularity, rows, cols)];
    rows_ = rows;
    cols_ = cols;
  }
  // As octet::quantize.
  template <class T>
  OCTET_HOST_INLINE quantized(matrix_view<T> in, const Granularity& granularity, const scale_rule& rule)
      : quantized(in.rows, in.cols, granularity) {
    not_finite_ = octet::quantize_into(in, granularity, rule, codes(), descales());
  }
  OCTET_HOST_INLINE quantized(quantized&& other) noexcept : quantized(other.granularity_) {
    *this = static_cast<quantized&&>(other);
  }
  OCTET_HOST_INLINE quantized& operator=(quantized&& other) noexcept {
    swap(codes_, other.codes_);
    swap(descales_, other.descales_);
    swap(rows_, other.rows_);
    swap(cols_, other.cols_);
    swap(not_finite_, other.not_finite_);
    swap(granularity_, other.granularity_);
    return *this;
  }
  OCTET_HOST_INLINE ~quantized() {
    delete[] codes_;
    delete[] descales_;
  }

  OCTET_HOST_INLINE std::size_t rows() const { return rows_; }
  OCTET_HOST_INLINE std::size_t cols() const { return cols_; }
  OCTET_HOST_INLINE matrix_view<F> codes() { return {codes_, rows_, cols_}; }
  OCTET_HOST_INLINE matrix_view<const F> codes() const { return {codes_, rows_, cols_}; }
  OCTET_HOST_INLINE descale* descales() { return descales_; }
  OCTET_HOST_INLINE const descale* descales() const { return descales_; }
  OCTET_HOST_INLINE const Granularity& granularity() const { return granularity_; }
  // NaN and infinite values among the input.
  OCTET_HOST_INLINE std::size_t not_finite() const { return not_finite_; }
  OCTET_HOST_INLINE quantized_view<F, Granularity> view() const& { return {codes(), descales_, granularity_}; }
  quantized_view<F, Granularity> view() const&& = delete;

 private:
  OCTET_HOST_INLINE explicit quantized(const Granularity& granularity) : granularity_(granularity) {}
  template <class U>
  OCTET_HOST_INLINE static void swap(U& a, U& b) {
    const U c = a;
    a = b;
    b = c;
  }
};

// Quantizes to memory of its own: quantize<e4m3>(matrix, per_token{}). Errors as quantize_into, and std::bad_alloc.
template <class F, class T, class Granularity>
[[nodiscard]] OCTET_HOST_INLINE quantized<F, Granularity> quantize(matrix_view<T> in, const Granularity& granularity,
                                                                   const scale_rule& rule = scale_rule()) {
  detail::require_types<F, std::remove_const_t<T>>();
  detail::require_matrix("quantize", "input", "input row_stride", in);
  detail::require_granularity(granularity);
  return quantized<F, Granularity>(in, granularity, rule);
}

// The same of the owning form.
template <class F, class Granularity, class T>
OCTET_HOST_INLINE void dequantize_into(const quantized<F, Granularity>& q, matrix_view<T> out) {
  octet::dequantize_into(q.view(), out);
}
template <class T, class F, class Granularity>
[[nodiscard]] OCTET_HOST_INLINE statistics measure(matrix_view<T> in, const quantized<F, Granularity>& q,
                                                   scaling how = scaling::divide) {
  return octet::measure(in, q.view(), how);
}

}  // namespace v0
}  // namespace octet
