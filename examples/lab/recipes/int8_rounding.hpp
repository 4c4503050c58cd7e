// INT8 with a scale, to compare FP8 with: amax / 127, nearest even, never -128.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "octet/granularity.hpp"
#include "octet/matrix.hpp"

namespace lab {

// What rounding did to values.
struct losses {
  std::uint64_t count = 0;
  std::uint64_t flushed = 0;  // not zero, but zero afterwards
  std::uint64_t clipped = 0;  // beyond the largest code

  losses& operator+=(const losses& other) {
    count += other.count;
    flushed += other.flushed;
    clipped += other.clipped;
    return *this;
  }
};

namespace int8 {

inline constexpr float largest = 127;

// What a tile is divided by: amax / at_most, a normal number; of a tile of zeros, `of_zeros`.
inline float descale_of(float amax, float at_most, float of_zeros) {
  return amax == 0 ? of_zeros : std::max(amax / at_most, std::numeric_limits<float>::min());
}

// The largest magnitude of each tile.
template <class Granularity>
std::vector<float> amaxes(octet::matrix_view<const float> in, const Granularity& granularity) {
  const octet::tiling t = granularity.tiles(in.rows, in.cols);
  const std::size_t tiles_a_row = t.cols.count(in.cols);
  std::vector<float> found(octet::descale_count(granularity, in.rows, in.cols));
  for (std::size_t r = 0; r < in.rows; ++r)
    for (std::size_t tile = 0, c = 0; tile < tiles_a_row; ++tile) {
      float& amax = found[t.rows.tile(r) * tiles_a_row + tile];
      for (const std::size_t end = t.cols.end(tile, in.cols); c < end; ++c) amax = std::max(amax, std::fabs(in(r, c)));
    }
  return found;
}

// value = float(code * descale) with code = round(float(x / descale)) within -127 and 127. descales: one a tile, above
// zero. in and out may be the same memory.
template <class Granularity>
losses round(octet::matrix_view<const float> in, const Granularity& granularity, const float* descales,
             octet::matrix_view<float> out) {
  const octet::tiling t = granularity.tiles(in.rows, in.cols);
  const std::size_t tiles_a_row = t.cols.count(in.cols);
  losses lost;
  lost.count = in.rows * in.cols;
  for (std::size_t r = 0; r < in.rows; ++r)
    for (std::size_t tile = 0, c = 0; tile < tiles_a_row; ++tile) {
      const float d = descales[t.rows.tile(r) * tiles_a_row + tile];
      for (const std::size_t end = t.cols.end(tile, in.cols); c < end; ++c) {
        const float x = in(r, c), code = std::nearbyint(x / d);
        lost.flushed += x != 0 && code == 0 ? 1 : 0;
        lost.clipped += std::fabs(code) > largest ? 1 : 0;
        out(r, c) = (code > largest ? largest : code < -largest ? -largest : code) * d;
      }
    }
  return lost;
}

}  // namespace int8
}  // namespace lab
