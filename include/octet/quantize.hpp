// Scaled values: quantize a matrix with descales that are found or given, dequantize it, and measure what was lost.
// SPDX-License-Identifier: MIT
#pragma once

#include "tiles.hpp"

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

  // Rows first to first + count - 1 of the same matrix, with the descales they use; an error if there are fewer.
  OCTET_HOST_INLINE constexpr quantized_view row_range(std::size_t first, std::size_t count) const {
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

}  // namespace detail

// Descales found. in: [rows, cols]. codes: [rows, cols]. descales: descale_count(granularity, rows, cols), written.
// Each tile's descale is scale_of<F>(its amax, rule); its codes are its values scaled as rule.on_the_way_in says. A
// tile is read twice (one that fits in the cache comes from memory once), one with NaN or infinities once more, and with
// nonfinite::reject the matrix once more before. Returns the number of NaN and infinite
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
  return detail::quantize_tiles<F, Value>(granularity.tiles(in.rows, in.cols), in, rule, codes, descales);
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
  detail::quantize_tiles<F, Value>(granularity.tiles(in.rows, in.cols), in, descales, codes, how);
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
  detail::dequantize_tiles<F, T>(q.granularity.tiles(out.rows, out.cols), q.codes, q.descales, out);
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
  return detail::measure_tiles<F, Value>(q.granularity.tiles(in.rows, in.cols), in, q.codes, q.descales, how);
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
