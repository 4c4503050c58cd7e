// Who shares a scale: each granularity cuts a matrix into tiles, one descale a tile. Index arithmetic only.
// SPDX-License-Identifier: MIT
#pragma once

#include "config.hpp"

namespace octet {
inline namespace v0 {

// A grid of equal tiles laid over a matrix of rows x cols elements. The matrix may begin inside a tile (a shard of a
// larger matrix) and end inside one (sizes that the tile does not divide): the first and last tiles are then short.
struct tiling {
  std::size_t tile_rows, tile_cols;  // elements; at least 1
  std::size_t first_row, first_col;  // where in its tile the matrix begins; below tile_rows, tile_cols

  // Number of the tile that holds a row, a column.
  OCTET_INLINE constexpr std::size_t tile_row(std::size_t row) const { return (row + first_row) / tile_rows; }
  OCTET_INLINE constexpr std::size_t tile_col(std::size_t col) const { return (col + first_col) / tile_cols; }

  // Number of tiles down `rows` rows, along `cols` columns; rounded up, and 0 for 0.
  OCTET_INLINE constexpr std::size_t grid_rows(std::size_t rows) const { return rows ? tile_row(rows - 1) + 1 : 0; }
  OCTET_INLINE constexpr std::size_t grid_cols(std::size_t cols) const { return cols ? tile_col(cols - 1) + 1 : 0; }

  // First row or column behind tile number `tile`, at most `end`.
  OCTET_INLINE constexpr std::size_t row_end(std::size_t tile, std::size_t end) const {
    return end - tile * tile_rows + first_row > tile_rows ? (tile + 1) * tile_rows - first_row : end;
  }
  OCTET_INLINE constexpr std::size_t col_end(std::size_t tile, std::size_t end) const {
    return end - tile * tile_cols + first_col > tile_cols ? (tile + 1) * tile_cols - first_col : end;
  }
};

// Each granularity answers one question: the tiling of a matrix of rows x cols. The descales are the row-major array
// [grid_rows(rows), grid_cols(cols)]. A granularity of the caller's own is any type with these two members;
// `below(first)` is the granularity of the same matrix without its first `first` rows.

// One descale for the whole matrix.
struct per_tensor {
  OCTET_INLINE constexpr tiling tiles(std::size_t rows, std::size_t cols) const {
    return {rows ? rows : 1, cols ? cols : 1, 0, 0};
  }
  OCTET_INLINE constexpr per_tensor below(std::size_t) const { return {}; }
};

// One descale an index of `axis`, the axis that keeps its index. 0: one a row (the output channel of a weight [N, K]);
// 1: one a column.
struct per_channel {
  int axis;
  OCTET_INLINE explicit constexpr per_channel(int kept = 0) : axis(kept) {}
  OCTET_INLINE constexpr tiling tiles(std::size_t rows, std::size_t cols) const {
    return axis == 0 ? tiling{1, cols ? cols : 1, 0, 0} : tiling{rows ? rows : 1, 1, 0, 0};
  }
  OCTET_INLINE constexpr per_channel below(std::size_t) const { return *this; }
};

// One descale a row: activations [tokens, features].
struct per_token {
  OCTET_INLINE constexpr tiling tiles(std::size_t, std::size_t cols) const { return {1, cols ? cols : 1, 0, 0}; }
  OCTET_INLINE constexpr per_token below(std::size_t) const { return {}; }
};

// One descale a block of R x C elements. 128 x 128 is the weight of fine-grained checkpoints, 1 x 128 its activations,
// 1 x 32 the MX block. first_row, first_col: the element of the whole matrix at which this shard begins; what
// counts is where in its block that lies.
template <std::size_t R, std::size_t C>
struct per_block {
  static_assert(R > 0 && C > 0, "a block has at least one element");
  std::size_t first_row, first_col;
  OCTET_INLINE explicit constexpr per_block(std::size_t row = 0, std::size_t col = 0)
      : first_row(row), first_col(col) {}
  OCTET_INLINE constexpr tiling tiles(std::size_t, std::size_t) const { return {R, C, first_row % R, first_col % C}; }
  OCTET_INLINE constexpr per_block below(std::size_t first) const {
    return per_block((first_row % R + first % R) % R, first_col);
  }
};

}  // namespace v0
}  // namespace octet
