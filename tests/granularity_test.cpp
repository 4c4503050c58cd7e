// Tilings: every element lies in the tile that the definition gives it, also where shards begin and end inside a tile.
// SPDX-License-Identifier: MIT
#include "octet/granularity.hpp"

#include "catch.hpp"

namespace {

// Walks the tiles of one axis by row_end and compares with the definition, element by element.
void check_rows(const octet::tiling& t, std::size_t rows) {
  CAPTURE(t.tile_rows, t.first_row, rows);
  std::size_t tile = 0, begin = 0;
  while (begin < rows) {
    const std::size_t end = t.row_end(tile, rows);
    REQUIRE(end > begin);
    for (std::size_t r = begin; r < end; ++r) {
      REQUIRE((t.first_row + r) / t.tile_rows == tile);
      REQUIRE(t.tile_row(r) == tile);
    }
    begin = end;
    ++tile;
  }
  REQUIRE(begin == rows);
  REQUIRE(t.grid_rows(rows) == tile);
}

}  // namespace

TEST_CASE("Tiles cover the rows in order, wherever the matrix begins and ends in them") {
  for (std::size_t tile : {1u, 2u, 3u, 7u, 128u})
    for (std::size_t first = 0; first<tile; first += tile> 16 ? 29 : 1)
      for (std::size_t rows = 0; rows < 300; rows += rows < 20 ? 1 : 37) check_rows({tile, 1, first, 0}, rows);
}

TEST_CASE("Columns are tiled as rows are") {
  for (std::size_t cols = 0; cols < 40; ++cols)
    for (std::size_t first = 0; first < 5; ++first) {
      const octet::tiling rows{5, 1, first, 0}, columns{1, 5, 0, first};
      REQUIRE(columns.grid_cols(cols) == rows.grid_rows(cols));
      for (std::size_t c = 0; c < cols; ++c) {
        REQUIRE(columns.tile_col(c) == rows.tile_row(c));
        REQUIRE(columns.col_end(columns.tile_col(c), cols) == rows.row_end(rows.tile_row(c), cols));
      }
    }
}

TEST_CASE("Granularities have the grids that checkpoints have") {
  using octet::per_block, octet::per_channel, octet::per_tensor, octet::per_token;
  const auto grid = [](const auto& granularity, std::size_t rows, std::size_t cols) {
    const octet::tiling t = granularity.tiles(rows, cols);
    return std::make_pair(t.grid_rows(rows), t.grid_cols(cols));
  };
  using shape = std::pair<std::size_t, std::size_t>;
  CHECK(grid(per_tensor{}, 576, 7168) == shape(1, 1));
  CHECK(grid(per_channel{0}, 576, 7168) == shape(576, 1));
  CHECK(grid(per_channel{1}, 576, 7168) == shape(1, 7168));
  CHECK(grid(per_token{}, 576, 7168) == shape(576, 1));
  CHECK(grid(per_block<128, 128>{}, 576, 7168) == shape(5, 56));
  CHECK(grid(per_block<128, 128>{}, 129, 130) == shape(2, 2));
  CHECK(grid(per_block<1, 32>{}, 3, 70) == shape(3, 3));
  CHECK(grid(per_block<128, 128>{}, 1000, 1) == shape(8, 1));
  CHECK(per_block<128, 128>{}.tiles(1000, 1).row_end(7, 1000) - 7 * 128 == 104);
  CHECK(grid(per_tensor{}, 0, 128) == shape(0, 1));
  CHECK(grid(per_block<128, 128>{}, 0, 128) == shape(0, 1));
}

TEST_CASE("A tensor-parallel shard of 96 rows that begins inside a block of 128 has its own first block") {
  // 192 rows over two ranks; the second begins at row 96 of the matrix.
  const octet::tiling t = octet::per_block<128, 128>{96, 0}.tiles(96, 256);
  CHECK(t.grid_rows(96) == 2);
  CHECK(t.row_end(0, 96) == 32);
  CHECK(t.row_end(1, 96) == 96);
  // One that begins in a later block counts from that block.
  CHECK(octet::per_block<128, 128>{96 + 1280, 0}.tiles(96, 256).grid_rows(96) == 2);
}

TEST_CASE("The granularity below some rows gives the same tiles to the rows that are left") {
  for (std::size_t first = 0; first < 9; ++first)
    for (std::size_t skip = 0; skip < 9; ++skip) {
      const octet::per_block<4, 2> whole{first, 0};
      const octet::tiling all = whole.tiles(20, 2), rest = whole.below(skip).tiles(20 - skip, 2);
      for (std::size_t r = 0; r < 20 - skip; ++r)
        REQUIRE(rest.tile_row(r) + all.tile_row(skip) == all.tile_row(r + skip));
    }
}
