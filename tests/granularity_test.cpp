// Tilings: every element lies in the tile that the definition gives it, also where shards begin and end inside a tile.
// SPDX-License-Identifier: MIT
#include "octet/granularity.hpp"

#include "catch.hpp"

namespace {

// Walks the tiles of an axis by end() and compares with the definition, element by element.
void check_axis(const octet::cut& axis, std::size_t length) {
  CAPTURE(axis.size, axis.first, length);
  std::size_t tile = 0, begin = 0;
  while (begin < length) {
    const std::size_t end = axis.end(tile, length);
    REQUIRE(end > begin);
    for (std::size_t i = begin; i < end; ++i) {
      REQUIRE((axis.first + i) / axis.size == tile);
      REQUIRE(axis.tile(i) == tile);
    }
    begin = end;
    ++tile;
  }
  REQUIRE(begin == length);
  REQUIRE(axis.count(length) == tile);
}

}  // namespace

TEST_CASE("Tiles cover an axis in order, wherever it begins and ends in them") {
  for (std::size_t size : {1u, 2u, 3u, 7u, 128u})
    for (std::size_t first = 0; first<size; first += size> 16 ? 29 : 1)
      for (std::size_t length = 0; length < 300; length += length < 20 ? 1 : 37) check_axis({size, first}, length);
}

TEST_CASE("Granularities have the grids that checkpoints have") {
  using octet::per_block, octet::per_channel, octet::per_tensor, octet::per_token;
  const auto grid = [](const auto& granularity, std::size_t rows, std::size_t cols) {
    const octet::tiling t = granularity.tiles(rows, cols);
    return std::make_pair(t.rows.count(rows), t.cols.count(cols));
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
  CHECK(per_block<128, 128>{}.tiles(1000, 1).rows.end(7, 1000) - 7 * 128 == 104);
  CHECK(grid(per_tensor{}, 0, 128) == shape(0, 1));
  CHECK(grid(per_block<128, 128>{}, 0, 128) == shape(0, 1));
}

TEST_CASE("A tensor-parallel shard of 96 rows that begins inside a block of 128 has its own first block") {
  // 192 rows over two ranks; the second begins at row 96 of the matrix.
  const octet::tiling t = octet::per_block<128, 128>{96, 0}.tiles(96, 256);
  CHECK(t.rows.count(96) == 2);
  CHECK(t.rows.end(0, 96) == 32);
  CHECK(t.rows.end(1, 96) == 96);
  // One that begins in a later block counts from that block.
  CHECK(octet::per_block<128, 128>{96 + 1280, 0}.tiles(96, 256).rows.count(96) == 2);
}

TEST_CASE("The granularity below some rows gives the same tiles to the rows that are left") {
  for (std::size_t first = 0; first < 9; ++first)
    for (std::size_t skip = 0; skip < 9; ++skip) {
      const octet::per_block<4, 2> whole{first, 0};
      const octet::tiling all = whole.tiles(20, 2), rest = whole.from_row(skip).tiles(20 - skip, 2);
      for (std::size_t r = 0; r < 20 - skip; ++r)
        REQUIRE(rest.rows.tile(r) + all.rows.tile(skip) == all.rows.tile(r + skip));
    }
}
