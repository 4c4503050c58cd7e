// Who shares a scale: each granularity cuts a matrix into tiles, one descale a tile. Index arithmetic only.
// SPDX-License-Identifier: MIT
#pragma once

#include "config.hpp"

namespace octet {
inline namespace v0 {

// One axis cut into equal tiles. The axis may begin inside a tile (a shard of a larger matrix) and end inside one (a
// length that the tile does not divide): the first and the last tile are then short.
struct cut {
  std::size_t size;   // elements a tile; at least 1
  std::size_t first;  // where in its tile the axis begins; below size

  // The number of the tile that holds element i, and of the tiles along `length` elements: rounded up, 0 for 0.
  // (Device code divides slowly: not where there is one tile, or one for each element.)
  OCTET_INLINE constexpr std::size_t tile(std::size_t i) const {
    return i + first < size ? 0 : size == 1 ? i : (i + first) / size;
  }
  OCTET_INLINE constexpr std::size_t count(std::size_t length) const { return length != 0 ? tile(length - 1) + 1 : 0; }

  // The first element of a tile.
  OCTET_INLINE constexpr std::size_t begin(std::size_t tile) const { return tile == 0 ? 0 : tile * size - first; }

  // The element behind the last one of a tile, at most `length`. (The difference below is the length from the beginning
  // of the tile, which may lie before the axis; unsigned arithmetic has it right.)
  OCTET_INLINE constexpr std::size_t end(std::size_t tile, std::size_t length) const {
    return length + first - tile * size > size ? (tile + 1) * size - first : length;
  }
};

struct tiling {
  cut rows, cols;
};

// Each granularity answers two questions. tiles(rows, cols): the tiling of a matrix; its descales are the row-major
// array [tiles.rows.count(rows), tiles.cols.count(cols)]. from_row(first): the granularity of the same matrix without
// its first rows. A granularity of the caller's own is any type with these two members.

// One descale for the whole matrix.
struct per_tensor {
  OCTET_INLINE constexpr tiling tiles(std::size_t rows, std::size_t cols) const {
    return {{rows != 0 ? rows : 1, 0}, {cols != 0 ? cols : 1, 0}};
  }
  OCTET_INLINE constexpr per_tensor from_row(std::size_t) const { return {}; }
};

// One descale an index of `axis`, the axis that keeps its index. 0: one a row (the output channel of a weight [N, K]);
// 1: one a column. The functions that take a matrix report another axis as an error.
struct per_channel {
  int axis;
  OCTET_INLINE explicit constexpr per_channel(int kept = 0) : axis(kept) {}
  OCTET_INLINE constexpr tiling tiles(std::size_t rows, std::size_t cols) const {
    return axis == 0 ? tiling{{1, 0}, {cols != 0 ? cols : 1, 0}} : tiling{{rows != 0 ? rows : 1, 0}, {1, 0}};
  }
  OCTET_INLINE constexpr per_channel from_row(std::size_t) const { return *this; }
};

// One descale a row: activations [tokens, features].
struct per_token {
  OCTET_INLINE constexpr tiling tiles(std::size_t, std::size_t cols) const {
    return {{1, 0}, {cols != 0 ? cols : 1, 0}};
  }
  OCTET_INLINE constexpr per_token from_row(std::size_t) const { return {}; }
};

// One descale a block of R x C elements. 128 x 128 is the weight of fine-grained checkpoints, 1 x 128 its activations,
// 1 x 32 the MX block. first_row, first_col: the element of the whole matrix at which this shard begins; what counts is
// where in its block that lies. The descales are the shard's own: the first belongs to the block of its first element.
template <std::size_t R, std::size_t C>
struct per_block {
  static_assert(R > 0 && C > 0, "a block has at least one element");
  std::size_t first_row, first_col;
  OCTET_INLINE explicit constexpr per_block(std::size_t row = 0, std::size_t col = 0)
      : first_row(row), first_col(col) {}
  OCTET_INLINE constexpr tiling tiles(std::size_t, std::size_t) const {
    return {{R, first_row % R}, {C, first_col % C}};
  }
  OCTET_INLINE constexpr per_block from_row(std::size_t first) const {
    return per_block(first_row % R + first % R, first_col);
  }
};

// The number of descales of a matrix [rows, cols].
template <class Granularity>
[[nodiscard]] OCTET_INLINE constexpr std::size_t descale_count(const Granularity& granularity, std::size_t rows,
                                                               std::size_t cols) {
  const tiling t = granularity.tiles(rows, cols);
  return t.rows.count(rows) * t.cols.count(cols);
}

}  // namespace v0
}  // namespace octet
