// What a thread of a kernel does to a matrix, as host code too: its share of a tile, and where codes and descales go.
// SPDX-License-Identifier: MIT
#pragma once

#include "../granularity.hpp"
#include "../matrix.hpp"
#include "slices.cuh"

namespace octet {
inline namespace v0 {
namespace cuda {

// Where the descales lie: that of tile (i, j) is data[i * row_stride + j * col_stride]. Descale is octet::descale, or
// octet::e8m0, for the power-of-two forms of a scale_rule. With `swizzled` they lie in blocks of 128 x 4 as tensor cores
// want those of MX, row_stride being the tiles of a row rounded up to 4: tile (i, j) of a block is its byte
// (i % 32) * 16 + (i / 32) * 4 + j, and what is left of a block is 0.
template <class Descale>
struct descale_view {
  Descale* data;
  std::size_t row_stride, col_stride;
  bool swizzled;

  OCTET_INLINE constexpr descale_view(Descale* p, std::size_t from_row_to_row, std::size_t from_col_to_col,
                                      bool in_blocks = false)
      : data(p), row_stride(from_row_to_row), col_stride(from_col_to_col), swizzled(in_blocks) {}
  template <class D, std::enable_if_t<std::is_same_v<const D, Descale>, int> = 0>
  OCTET_INLINE constexpr descale_view(const descale_view<D>& d)
      : descale_view(d.data, d.row_stride, d.col_stride, d.swizzled) {}
  OCTET_INLINE constexpr std::size_t index(std::size_t i, std::size_t j) const {
    if (!swizzled) return i * row_stride + j * col_stride;
    return (i / 128 * (row_stride / 4) + j / 4) * 512 + i % 32 * 16 + i % 128 / 32 * 4 + j % 4;
  }

  // How many descales the memory of [tile_rows, tile_cols] of them holds; 0 if the strides let two share a place.
  OCTET_INLINE constexpr std::size_t extent(std::size_t tile_rows, std::size_t tile_cols) const {
    constexpr std::size_t most = static_cast<std::size_t>(-1) / 64;
    if (tile_rows == 0 || tile_cols == 0) return 0;
    const std::size_t i = tile_rows - 1, j = tile_cols - 1;
    if (swizzled) {
      const bool fits = row_stride % 4 == 0 && row_stride >= tile_cols && row_stride <= most / (i / 128 * 128 + 128);
      return fits ? (i / 128 + 1) * 128 * row_stride : 0;
    }
    if ((i > 0 && row_stride > most / i) || (j > 0 && col_stride > most / j)) return 0;
    const bool by_rows = (i == 0 || row_stride > j * col_stride) && (j == 0 || col_stride > 0);
    const bool by_cols = (j == 0 || col_stride > i * row_stride) && (i == 0 || row_stride > 0);
    return by_rows || by_cols ? i * row_stride + j * col_stride + 1 : 0;
  }
};

namespace detail {

OCTET_INLINE constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace detail

// The descales [tile_rows, tile_cols] row by row, as on the host; column by column, each beginning at a multiple of 4, as
// cuBLASLt, TransformerEngine and DeepGEMM take those of 1 x 128; in the blocks of MX.
template <class Descale>
OCTET_INLINE constexpr descale_view<Descale> row_major(Descale* p, std::size_t tile_cols) {
  return {p, tile_cols, 1};
}
template <class Descale>
OCTET_INLINE constexpr descale_view<Descale> column_major(Descale* p, std::size_t tile_rows) {
  return {p, 1, detail::round_up(tile_rows, 4)};
}
template <class Descale>
OCTET_INLINE constexpr descale_view<Descale> swizzled_128x4(Descale* p, std::size_t tile_cols) {
  return {p, detail::round_up(tile_cols, 4), 1, true};
}

namespace detail {

template <class Descale>
OCTET_INLINE Descale stored_as(descale d) {
  if constexpr (std::is_same_v<Descale, descale>)
    return d;
  else
    return octet::encode<Descale>(d.value());
}
OCTET_INLINE descale read_descale(descale d) { return d; }
OCTET_INLINE descale read_descale(e8m0 d) { return descale(octet::decode(d)); }

// -- Tiles -----------------------------------------------------------------------------------------------------------

// The elements of one tile, cut along its rows into slices of N.
template <int N>
struct tile_slices {
  std::size_t first_row, first_col, rows, cols, of_a_row;

  OCTET_INLINE static tile_slices of(const tiling& t, std::size_t rows, std::size_t cols, std::size_t i,
                                     std::size_t j) {
    const std::size_t r = t.rows.begin(i), c = t.cols.begin(j), width = t.cols.end(j, cols) - c;
    return {r, c, t.rows.end(i, rows) - r, width, (width + N - 1) / N};
  }
  OCTET_INLINE std::size_t count() const { return rows * of_a_row; }
  OCTET_INLINE std::size_t row(std::size_t slice) const { return rows == 1 ? first_row : first_row + slice / of_a_row; }
  OCTET_INLINE std::size_t col(std::size_t slice) const {
    return first_col + N * (rows == 1 ? slice : slice % of_a_row);
  }
  OCTET_INLINE std::size_t there(std::size_t col) const { return first_col + cols - col; }
};

// Whether no slice of N, counted from the first column, lies in two tiles.
template <int N>
OCTET_INLINE bool cuts_between_slices(const cut& c, std::size_t cols) {
  return c.count(cols) == 1 || (c.size % N == 0 && c.first % N == 0);
}

// Codes go to the rows of a matrix.
template <class F>
struct matrix_rows {
  matrix_view<F> codes;
  OCTET_INLINE F* row(std::size_t r) const { return codes.row(r); }
  OCTET_INLINE std::size_t descale_row(std::size_t i) const { return i; }
};

// What one thread has of a tile that `Team` threads share: every Team-th slice from its own number on. The first Held of
// them stay in its registers between finding the descale and using it; where there can be more (Again), those are read
// again.
template <int N, int Team, int Held, bool Again, class T>
class tile_share {
  pack<T, N> held_[Held];
  std::uint32_t largest_;  // of all of them, whatever it is

 public:
  // Reads the share of thread `lane`; the bits of its amax.
  OCTET_INLINE std::uint32_t read(matrix_view<const T> in, const tile_slices<N>& tile, std::size_t lane,
                                  bool of_finite) {
    const std::size_t count = tile.count();
    std::uint32_t amax = largest_ = 0;
    const auto note = [&](const pack<T, N>& x) {
      const std::uint32_t largest = largest_bits(x);
      largest_ = larger{}(largest_, largest);
      amax = larger{}(amax, amax_bits(x, largest, of_finite));
    };
    OCTET_UNROLL
    for (int k = 0; k < Held; ++k)
      if (slice_of(lane, k) < count) held_[k] = read_slice(in, tile, slice_of(lane, k));
    OCTET_UNROLL
    for (int k = 0; k < Held; ++k)
      if (slice_of(lane, k) < count) note(held_[k]);
    for (std::size_t slice = slice_of(lane, Held); Again && slice < count; slice += Team)
      note(read_slice(in, tile, slice));
    return amax;
  }

  // Writes the codes of the share.
  template <class F, class Rows>
  OCTET_INLINE void write(matrix_view<const T> in, const tile_slices<N>& tile, std::size_t lane, const group_scale& s,
                          const Rows& to) const {
    const std::size_t count = tile.count();
    OCTET_UNROLL
    for (int k = 0; k < Held; ++k)
      if (slice_of(lane, k) < count) write_slice<F>(held_[k], tile, slice_of(lane, k), s, to);
    for (std::size_t slice = slice_of(lane, Held); Again && slice < count; slice += Team)
      write_slice<F>(read_slice(in, tile, slice), tile, slice, s, to);
  }

 private:
  OCTET_INLINE static std::size_t slice_of(std::size_t lane, int k) {
    return lane + std::size_t{Team} * static_cast<std::size_t>(k);
  }
  OCTET_INLINE static pack<T, N> read_slice(matrix_view<const T> in, const tile_slices<N>& tile, std::size_t slice) {
    const std::size_t col = tile.col(slice);
    return load<N>(in.row(tile.row(slice)) + col, tile.there(col));
  }
  template <class F, class Rows>
  OCTET_INLINE void write_slice(const pack<T, N>& x, const tile_slices<N>& tile, std::size_t slice,
                                const group_scale& s, const Rows& to) const {
    const std::size_t col = tile.col(slice);
    if (F* const row = to.row(tile.row(slice)); row != nullptr)
      store(row + col, detail::quantize<F>(x, s, largest_), tile.there(col));
  }
};

// -- Scales that are there already -----------------------------------------------------------------------------------

// Where the scale of a tile comes from: a descale that is given, or an amax that a kernel before this one has found, of
// the whole or of each column. In the second case a thread also notes the descale.
template <class Descale>
struct given_scales {
  descale_view<const Descale> descales;
  scaling how;
  OCTET_INLINE group_scale scale(std::size_t i, std::size_t j) const {
    return scale_of(read_descale(descales.data[descales.index(i, j)]), how);
  }
  OCTET_INLINE void note(std::size_t, std::size_t, const group_scale&) const {}
};
template <class F>
struct found_scales {
  const float* amax;  // row-major, of the tiles
  std::size_t tile_cols;
  scale_rule rule;
  descale* descales;
  OCTET_INLINE group_scale scale(std::size_t i, std::size_t j) const {
    return scale_of<F>(amax[i * tile_cols + j], rule);
  }
  OCTET_INLINE void note(std::size_t i, std::size_t j, const group_scale& s) const {
    descales[i * tile_cols + j] = s.stored;
  }
};

// Slice `number` of a matrix cut into slices of N along its rows, all of one tile: N is 1, or the tiles are N-wide.
template <int N>
struct slice_place {
  std::size_t row, col, i, j;
  OCTET_INLINE static slice_place of(const tiling& t, std::size_t cols, std::size_t number) {
    const std::size_t of_a_row = (cols + N - 1) / N, row = number < of_a_row ? 0 : number / of_a_row;
    const std::size_t col = (number - row * of_a_row) * N;
    return {row, col, t.rows.tile(row), t.cols.tile(col)};
  }
};

template <int N, class F, class T, class Scales, class Rows>
OCTET_INLINE void quantize_slice(matrix_view<const T> in, const tiling& t, const Scales& scales, const Rows& to,
                                 std::size_t number) {
  const auto at = slice_place<N>::of(t, in.cols, number);
  if (at.row >= in.rows) return;
  const group_scale s = scales.scale(at.i, at.j);
  if (number == 0) scales.note(0, 0, s);
  F* const row = to.row(at.row);
  if (row == nullptr) return;
  const std::size_t there = in.cols - at.col;
  const pack<T, N> x = load<N>(in.row(at.row) + at.col, there);
  store(row + at.col, detail::quantize<F>(x, s, largest_bits(x)), there);
}
template <int N, class T, class F, class Descale>
OCTET_INLINE void dequantize_slice(matrix_view<const F> codes, const tiling& t,
                                   const descale_view<const Descale>& descales, matrix_view<T> out,
                                   std::size_t number) {
  const auto at = slice_place<N>::of(t, out.cols, number);
  if (at.row >= out.rows) return;
  const float d = read_descale(descales.data[descales.index(at.i, at.j)]).value();
  const std::size_t there = out.cols - at.col;
  store(out.row(at.row) + at.col, detail::dequantize<T>(load<N>(codes.row(at.row) + at.col, there), d), there);
}

// -- One descale a column --------------------------------------------------------------------------------------------

// A thread takes N columns of `column_rows` rows: patch `number` of a matrix.
constexpr std::size_t column_rows = 64;
template <int N>
struct column_patch {
  std::size_t row, end, col;
  OCTET_INLINE static column_patch of(std::size_t rows, std::size_t cols, std::size_t number) {
    const std::size_t of_a_row = (cols + N - 1) / N, first = number / of_a_row * column_rows;
    return {first, first + column_rows < rows ? first + column_rows : rows, number % of_a_row * N};
  }
  OCTET_INLINE static std::size_t count(std::size_t rows, std::size_t cols) {
    return (rows + column_rows - 1) / column_rows * ((cols + N - 1) / N);
  }
};

template <int N, class T>
OCTET_INLINE pack<std::uint32_t, N> column_amax_bits(matrix_view<const T> in, const column_patch<N>& patch,
                                                     bool of_finite) {
  pack<std::uint32_t, N> largest{};
  for (std::size_t row = patch.row; row < patch.end; ++row) {
    const pack<T, N> x = load<N>(in.row(row) + patch.col, in.cols - patch.col);
    OCTET_UNROLL
    for (int k = 0; k < N; ++k) {
      const std::uint32_t bits = amax_bits(pack<T, 1>{{x.value[k]}}, of_finite);
      if (bits > largest.value[k]) largest.value[k] = bits;
    }
  }
  return largest;
}
template <int N, class F, class T, class Scales>
OCTET_INLINE void quantize_columns(matrix_view<const T> in, const Scales& scales, matrix_view<F> codes,
                                   const column_patch<N>& patch) {
  if (patch.row >= in.rows) return;
  const std::size_t there = in.cols - patch.col;
  group_scale s[N] = {};
  OCTET_UNROLL
  for (int k = 0; k < N; ++k)
    if (static_cast<std::size_t>(k) < there) {
      s[k] = scales.scale(0, patch.col + static_cast<std::size_t>(k));
      if (patch.row == 0) scales.note(0, patch.col + static_cast<std::size_t>(k), s[k]);
    }
  for (std::size_t row = patch.row; row < patch.end; ++row) {
    const pack<T, N> x = load<N>(in.row(row) + patch.col, there);
    pack<F, N> q{};
    OCTET_UNROLL
    for (int k = 0; k < N; ++k)
      if (static_cast<std::size_t>(k) < there) q.value[k] = quantize_one<F>(wide(x.value[k]), s[k]);
    store(codes.row(row) + patch.col, q, there);
  }
}

// -- Transposed ------------------------------------------------------------------------------------------------------

// A block turns a patch of 128 rows and 32 columns in shared memory: 256 threads read it along the rows, and each of them
// takes 16 values of a column, which are neighbours in a row of the transpose; the threads of 8 such slices, a row of the
// patch, are neighbours too.
struct transposed_patch {
  static constexpr std::size_t rows = 128, cols = 32, threads = 256;
  static constexpr int values = 16;
  std::size_t first_row, first_col;

  // Patch `number` of a matrix; patches of neighbouring columns are neighbours. Or with strips of `side_by_side` patches in a
  // row: the first patch of strip `number`.
  OCTET_INLINE static transposed_patch of(std::size_t matrix_cols, std::size_t number, std::size_t side_by_side = 1) {
    const std::size_t width = side_by_side * cols, of_a_row = (matrix_cols + width - 1) / width;
    return {number / of_a_row * rows, number % of_a_row * width};
  }
  OCTET_INLINE static std::size_t count(std::size_t matrix_rows, std::size_t matrix_cols,
                                        std::size_t side_by_side = 1) {
    const std::size_t width = side_by_side * cols;
    return (matrix_rows + rows - 1) / rows * ((matrix_cols + width - 1) / width);
  }
  OCTET_INLINE transposed_patch next() const { return {first_row, first_col + cols}; }

  // Where element (row, col) lies in shared memory, in words. A warp writes 32 neighbours. It reads element i of slices
  // j = 0 .. 7 of 4 columns: the words 33 (16 j + i) + 20 j + col, modulo 32 4 j + col + i: 32 different banks.
  OCTET_INLINE static constexpr std::size_t place(std::size_t row, std::size_t col) {
    return row * (cols + 1) + row / values * 20 + col;
  }
  static constexpr std::size_t words = rows * (cols + 1) + rows / values * 20;

  template <class T>
  OCTET_INLINE void read(matrix_view<const T> in, std::size_t thread, float* shared) const {
    const std::size_t col = thread % cols;
    for (std::size_t row = thread / cols; row < rows; row += threads / cols)
      shared[place(row, col)] =
          first_row + row < in.rows && first_col + col < in.cols ? wide(in(first_row + row, first_col + col)) : 0.0f;
  }
  // The slice of a thread: its values, and its row and first column, in the transpose or in the matrix itself. (There a
  // warp reads element i of slices j = 0 and 1 of 16 rows: banks row + 16 j + i, all different.)
  OCTET_INLINE static pack<float, values> slice(const float* shared, std::size_t thread) {
    pack<float, values> x;
    for (std::size_t i = 0; i < values; ++i) x.value[i] = shared[place(thread % 8 * values + i, thread / 8)];
    return x;
  }
  OCTET_INLINE std::size_t row(std::size_t thread) const { return first_col + thread / 8; }
  OCTET_INLINE std::size_t col(std::size_t thread) const { return first_row + thread % 8 * values; }
  OCTET_INLINE static pack<float, values> straight_slice(const float* shared, std::size_t thread) {
    pack<float, values> x;
    for (std::size_t i = 0; i < values; ++i) x.value[i] = shared[place(thread / 2, thread % 2 * values + i)];
    return x;
  }
  OCTET_INLINE std::size_t straight_row(std::size_t thread) const { return first_row + thread / 2; }
  OCTET_INLINE std::size_t straight_col(std::size_t thread) const { return first_col + thread % 2 * values; }
};

// The codes of a slice of the transpose, with the scale of its tile or, where tiles end within slices, of each value's.
template <class F, int N, class Scales>
OCTET_INLINE pack<F, N> quantize_in_row(const pack<float, N>& x, const tiling& t, const Scales& scales, std::size_t row,
                                        std::size_t col, std::size_t cols, bool one_scale) {
  const std::size_t i = t.rows.tile(row);
  if (one_scale) return detail::quantize<F>(x, scales.scale(i, t.cols.tile(col)), largest_bits(x));
  pack<F, N> q{};
  OCTET_UNROLL
  for (int k = 0; k < N; ++k)
    if (const std::size_t c = col + static_cast<std::size_t>(k); c < cols)
      q.value[k] = quantize_one<F>(x.value[k], scales.scale(i, t.cols.tile(c)));
  return q;
}

}  // namespace detail
}  // namespace cuda
}  // namespace v0
}  // namespace octet
