// The table of rows: there is always one that runs, and every row that runs here gives the bytes of the scalar row.
// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include "catch.hpp"
#include "octet/bulk.hpp"
#include "oracle.hpp"

namespace simd = octet::simd;

TEST_CASE("The last row is the scalar one, and it runs everywhere") {
  REQUIRE(simd::row_count >= 1);
  CHECK(std::string(simd::row_name(simd::row_count - 1)) == "scalar");
  CHECK(simd::row_runs_here(simd::row_count - 1));
  CHECK(simd::row_runs_here(simd::row_in_use()));
}

TEST_CASE("Every row gives the same bytes, and a row can be picked") {
  oracle::random random(1);
  std::vector<std::uint32_t> bits(100003);
  for (auto& b : bits) b = static_cast<std::uint32_t>(random());
  std::vector<float> x(bits.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = octet::bit_cast<float>(bits[i]);
  std::vector<octet::e4m3> wanted(x.size()), got(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) wanted[i] = octet::encode<octet::e4m3>(x[i]);
  for (std::size_t row = 0; row < simd::row_count; ++row) {
    if (!simd::row_runs_here(row)) continue;
    simd::pick_row(row);
    CHECK(simd::row_in_use() == row);
    octet::encode(x, got);
    std::size_t differences = 0;
    for (std::size_t i = 0; i < x.size(); ++i) differences += got[i].bits() != wanted[i].bits();
    CAPTURE(simd::row_name(row));
    CHECK(differences == 0);
  }
  simd::pick_row(simd::row_count);
  CHECK(simd::row_runs_here(simd::row_in_use()));
}
