// Scaled values: quantize a matrix with descales that are found or given, dequantize it, and measure what was lost.
// SPDX-License-Identifier: MIT
#pragma once

#include "bulk.hpp"
#include "granularity.hpp"
#include "matrix.hpp"
#include "statistics.hpp"

namespace octet {
inline namespace v0 {

// In all of these: matrices are row-major [rows, cols]; T is float, octet::float16, octet::bfloat16 or another 16-bit
// float; the descales are the row-major array of the granularity's tiles, in the units of the data; value ~ code *
// descale. Codes are rounded to nearest even and saturate. NaN becomes the format's NaN. Shapes that do not fit, null
// pointers, overlapping arrays and descales that are not finite and above zero are reported as errors.hpp says, before
// anything is written. The work is done in the calling thread; threads share it by taking rows of their own (below()).

// A quantized matrix in the caller's memory: F codes, one descale a tile of the granularity.
template <class F, class Granularity>
struct quantized_view {
  matrix_view<const F> codes;
  const descale* descales;
  Granularity granularity;

  OCTET_INLINE constexpr tiling tiles() const { return granularity.tiles(codes.rows, codes.cols); }
  OCTET_INLINE constexpr std::size_t descale_rows() const { return tiles().grid_rows(codes.rows); }
  OCTET_INLINE constexpr std::size_t descale_cols() const { return tiles().grid_cols(codes.cols); }
  OCTET_INLINE constexpr std::size_t descale_count() const { return descale_rows() * descale_cols(); }

  // Rows first to first + count - 1 of the same matrix, with the descales they use.
  OCTET_INLINE constexpr quantized_view below(std::size_t first, std::size_t count) const {
    const tiling t = tiles();
    return {codes.below(first, count), descales + t.tile_row(first) * t.grid_cols(codes.cols),
            granularity.below(first)};
  }
};

namespace detail {

// Tiles one column wide are worked on in runs of so many neighbours, so that memory is read along its rows.
inline constexpr std::size_t columns_at_once = 256;

// Calls visit.tile(number, r0, r1, c0, c1) for every tile, or for tiles one column wide
// visit.columns(first number, r0, r1, c0, c1) for runs of them.
template <class Visitor>
OCTET_HOST_INLINE void for_each_tile(const tiling& t, std::size_t rows, std::size_t cols, Visitor& visit) {
  const std::size_t grid_cols = t.grid_cols(cols);
  for (std::size_t r0 = 0, r1 = 0; r0 < rows && cols != 0; r0 = r1) {
    const std::size_t tile_row = t.tile_row(r0);
    r1 = t.row_end(tile_row, rows);
    for (std::size_t c0 = 0, c1 = 0; c0 < cols; c0 = c1) {
      const std::size_t tile_col = t.tile_col(c0), number = tile_row * grid_cols + tile_col;
      if (t.tile_cols == 1) {
        c1 = cols - c0 < columns_at_once ? cols : c0 + columns_at_once;
        visit.columns(number, r0, r1, c0, c1);
      } else {
        c1 = t.col_end(tile_col, cols);
        visit.tile(number, r0, r1, c0, c1);
      }
    }
  }
}

// The second half of a tile's work, when its scales are known.
template <class F, class T>
struct encode_tiles {
  matrix_view<const T> in;
  matrix_view<F> codes;
  const simd::scaled_conversion<F, T>& kernels;

  OCTET_HOST_INLINE void tile(double factor, std::size_t r0, std::size_t r1, std::size_t c0, std::size_t c1) const {
    for (std::size_t r = r0; r < r1; ++r) kernels.quantize(in.row(r) + c0, codes.row(r) + c0, c1 - c0, factor);
  }
  OCTET_HOST_INLINE void columns(const double* factors, std::size_t r0, std::size_t r1, std::size_t c0,
                                 std::size_t c1) const {
    for (std::size_t r = r0; r < r1; ++r) kernels.quantize_each(in.row(r) + c0, codes.row(r) + c0, c1 - c0, factors);
  }
};

template <class F, class T>
struct quantize_found {
  encode_tiles<F, T> encode;
  const simd::reduction<T>& kernels;
  const scale_rule& rule;
  descale* descales;
  std::size_t not_finite;

  // The scale of a tile from the bits of its largest magnitude; NaN and infinity take a second look.
  OCTET_HOST_INLINE group_scale scale_from(exact::bits_of<T> largest, std::size_t r0, std::size_t r1, std::size_t c0,
                                           std::size_t c1) {
    if (largest < float_traits<T>::infinity) return scale_of<F>(to_source(float_traits<T>::from_bits(largest)), rule);
    magnitudes<float> tile;
    for (std::size_t r = r0; r < r1; ++r) {
      const magnitudes<float> row = count_magnitudes(encode.in.row(r) + c0, c1 - c0);
      tile.finite = larger(tile.finite, row.finite);
      tile.not_finite += row.not_finite;
      tile.has_nan = tile.has_nan || row.has_nan;
    }
    not_finite += tile.not_finite;
    return scale_of<F>(amax_by_policy("quantize: a group has", tile, rule.on_nonfinite), rule);
  }

  OCTET_HOST_INLINE void tile(std::size_t number, std::size_t r0, std::size_t r1, std::size_t c0, std::size_t c1) {
    exact::bits_of<T> largest = 0;
    for (std::size_t r = r0; r < r1; ++r) {
      const exact::bits_of<T> row = kernels.amax(encode.in.row(r) + c0, c1 - c0);
      largest = row > largest ? row : largest;
    }
    const group_scale s = scale_from(largest, r0, r1, c0, c1);
    descales[number] = s.stored;
    encode.tile(s.factor, r0, r1, c0, c1);
  }

  OCTET_HOST_INLINE void columns(std::size_t number, std::size_t r0, std::size_t r1, std::size_t c0, std::size_t c1) {
    exact::bits_of<T> largest[columns_at_once] = {};
    double factors[columns_at_once];
    for (std::size_t r = r0; r < r1; ++r) kernels.amax_each(encode.in.row(r) + c0, largest, c1 - c0);
    for (std::size_t c = c0; c < c1; ++c) {
      const group_scale s = scale_from(largest[c - c0], r0, r1, c, c + 1);
      descales[number + (c - c0)] = s.stored;
      factors[c - c0] = s.factor;
    }
    encode.columns(factors, r0, r1, c0, c1);
  }
};

template <class F, class T>
struct quantize_given {
  encode_tiles<F, T> encode;
  scaling how;
  const descale* descales;

  OCTET_HOST_INLINE void tile(std::size_t number, std::size_t r0, std::size_t r1, std::size_t c0,
                              std::size_t c1) const {
    encode.tile(scale_of(descales[number], how).factor, r0, r1, c0, c1);
  }
  OCTET_HOST_INLINE void columns(std::size_t number, std::size_t r0, std::size_t r1, std::size_t c0,
                                 std::size_t c1) const {
    double factors[columns_at_once];
    for (std::size_t c = c0; c < c1; ++c) factors[c - c0] = scale_of(descales[number + (c - c0)], how).factor;
    encode.columns(factors, r0, r1, c0, c1);
  }
};

template <class F, class T>
struct dequantize_tiles {
  matrix_view<const F> codes;
  matrix_view<T> out;
  const simd::scaled_conversion<F, T>& kernels;
  const descale* descales;

  OCTET_HOST_INLINE void tile(std::size_t number, std::size_t r0, std::size_t r1, std::size_t c0,
                              std::size_t c1) const {
    for (std::size_t r = r0; r < r1; ++r)
      kernels.dequantize(codes.row(r) + c0, out.row(r) + c0, c1 - c0, descales[number].value());
  }
  OCTET_HOST_INLINE void columns(std::size_t number, std::size_t r0, std::size_t r1, std::size_t c0,
                                 std::size_t c1) const {
    float run[columns_at_once];
    for (std::size_t c = c0; c < c1; ++c) run[c - c0] = descales[number + (c - c0)].value();
    for (std::size_t r = r0; r < r1; ++r) kernels.dequantize_each(codes.row(r) + c0, out.row(r) + c0, c1 - c0, run);
  }
};

template <class A, class B>
OCTET_HOST_INLINE void require_matrices(const matrix_view<A>& in, const matrix_view<B>& out) {
  require_matrix("quantize: row_stride of the input", in);
  require_matrix("quantize: row_stride of the output", out);
  require_same_shape("quantize: the output has", in, out);
  require_apart("quantize: output at a distance of", in.data, in.extent() * sizeof(A), out.data,
                out.extent() * sizeof(B));
}

template <class T>
inline constexpr bool is_quantizable_v =
    is_float_v<std::remove_const_t<T>> && !std::is_same_v<std::remove_const_t<T>, double>;

}  // namespace detail

// The number of descales of a matrix [rows, cols].
template <class Granularity>
OCTET_INLINE constexpr std::size_t descale_count(const Granularity& granularity, std::size_t rows, std::size_t cols) {
  const tiling t = granularity.tiles(rows, cols);
  return t.grid_rows(rows) * t.grid_cols(cols);
}

// Descales found. in: [rows, cols]. codes: [rows, cols]. descales: descale_count(granularity, rows, cols), written.
// Each tile's descale is scale_of<F>(its amax, rule); its codes are its values scaled as rule.on_the_way_in says. The
// matrix is read twice, a tile at a time. Returns the number of NaN and infinite values. Source: OCP OFP8 1.0 (codes),
// OCP MX 1.0 6.3 (shared power-of-two scales).
template <class F, class T, class Granularity, std::enable_if_t<detail::is_quantizable_v<T>, int> = 0>
OCTET_HOST_INLINE std::size_t quantize_into(matrix_view<T> in, const Granularity& granularity, const scale_rule& rule,
                                            matrix_view<F> codes, descale* descales) {
  using Value = std::remove_const_t<T>;
  detail::require_matrices(in, codes);
  detail::require_rule(rule);
  const std::size_t count = descale_count(granularity, in.rows, in.cols);
  detail::require_pointer("quantize: descales", descales, count);
  detail::require_apart("quantize: descales at a distance of", in.data, in.extent() * sizeof(T), descales,
                        count * sizeof(descale));
  detail::require_apart("quantize: descales at a distance of", codes.data, codes.extent(), descales,
                        count * sizeof(descale));
  detail::quantize_found<F, Value> visit{
      {in, codes, simd::scales<F, Value>()}, simd::reduces<Value>(), rule, descales, 0};
  detail::for_each_tile(granularity.tiles(in.rows, in.cols), in.rows, in.cols, visit);
  return visit.not_finite;
}

// Descales given: static scales, from a checkpoint or a calibration. `how` is scaling::divide or scaling::multiply.
// Values beyond the largest code saturate; octet::measure counts them.
template <class F, class T, class Granularity, std::enable_if_t<detail::is_quantizable_v<T>, int> = 0>
OCTET_HOST_INLINE void quantize_into(matrix_view<T> in, const Granularity& granularity, const descale* descales,
                                     matrix_view<F> codes, scaling how = scaling::divide) {
  using Value = std::remove_const_t<T>;
  detail::require_matrices(in, codes);
  detail::require_usable("quantize: descale number", descales, descale_count(granularity, in.rows, in.cols));
  const detail::quantize_given<F, Value> visit{{in, codes, simd::scales<F, Value>()}, how, descales};
  detail::for_each_tile(granularity.tiles(in.rows, in.cols), in.rows, in.cols, visit);
}

// out = code * descale, rounded once to T, to nearest even. out: [rows, cols]. For a range of rows pass q.below(first,
// count) and the same rows of the output.
template <class F, class Granularity, class T, std::enable_if_t<detail::is_quantizable_v<T>, int> = 0>
OCTET_HOST_INLINE void dequantize_into(const quantized_view<F, Granularity>& q, matrix_view<T> out) {
  detail::require_matrices(q.codes, out);
  detail::require_pointer("quantize: descales", q.descales, q.descale_count());
  const detail::dequantize_tiles<F, T> visit{q.codes, out, simd::scales<F, T>(), q.descales};
  detail::for_each_tile(q.tiles(), out.rows, out.cols, visit);
}

// What quantizing `in` to `q` lost; `how` says how the values were scaled, for the count of clipped values.
// Statistics of row ranges add up to those of the whole, to the bit.
template <class T, class F, class Granularity, std::enable_if_t<detail::is_quantizable_v<T>, int> = 0>
OCTET_HOST_INLINE statistics measure(matrix_view<T> in, const quantized_view<F, Granularity>& q,
                                     scaling how = scaling::divide) {
  detail::require_matrices(in, q.codes);
  detail::require_pointer("quantize: descales", q.descales, q.descale_count());
  const auto& kernels = simd::scales<F, std::remove_const_t<T>>();
  const tiling t = q.tiles();
  const std::size_t grid_cols = t.grid_cols(in.cols);
  statistics total;
  for (std::size_t r = 0; r < in.rows; ++r) {
    simd::row_losses row;
    for (std::size_t c0 = 0, c1 = 0; c0 < in.cols; c0 = c1) {
      const std::size_t tile_col = t.tile_col(c0);
      c1 = t.col_end(tile_col, in.cols);
      const group_scale s = scale_of(q.descales[t.tile_row(r) * grid_cols + tile_col], how);
      kernels.measure(in.row(r) + c0, q.codes.row(r) + c0, c1 - c0, c0, s.factor, s.stored.value(), row);
    }
    total.add_row(row, in.cols);
  }
  return total;
}

// A quantized matrix that owns its memory. Moves, does not copy; view() is what the other functions take.
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
    detail::require(cols == 0 || rows <= static_cast<std::size_t>(-1) / 2 / cols, "quantize: rows", rows,
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
    not_finite_ = quantize_into(in, granularity, rule, codes(), descales());
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

  OCTET_HOST_INLINE matrix_view<F> codes() { return {codes_, rows_, cols_}; }
  OCTET_HOST_INLINE descale* descales() { return descales_; }
  OCTET_HOST_INLINE quantized_view<F, Granularity> view() const {
    return {{codes_, rows_, cols_}, descales_, granularity_};
  }
  // NaN and infinite values among the input.
  OCTET_HOST_INLINE std::size_t not_finite() const { return not_finite_; }

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
template <class F, class T, class Granularity, std::enable_if_t<detail::is_quantizable_v<T>, int> = 0>
OCTET_HOST_INLINE quantized<F, Granularity> quantize(matrix_view<T> in, const Granularity& granularity,
                                                     const scale_rule& rule = scale_rule()) {
  detail::require_matrix("quantize: row_stride of the input", in);
  return quantized<F, Granularity>(in, granularity, rule);
}

}  // namespace v0
}  // namespace octet
