// A matrix of values, its codes and its descales for every turn, as large as the bytes of a turn have room for.
// SPDX-License-Identifier: MIT
#pragma once

#include "octet/granularity.hpp"
#include "octet/matrix.hpp"
#include "row.hpp"

namespace cuda_bench {

// reads: how often the values must be read, where a descale is known only behind the last of them. copies: how often codes
// and descales are written; the room of a second copy is its user's to take.
template <class T, class F, class Descale, class Granularity>
struct matrices {
  std::size_t rows, cols, count;
  double bytes;
  turns<T> x;
  turns<F> codes;
  turns<Descale> descales;

  // Nothing is written yet. Rows are whole tiles of 128 of them where there are so many.
  matrices(arena& a, std::size_t columns, const Granularity& granularity, std::size_t reads = 1, std::size_t copies = 1)
      : cols(columns) {
    constexpr std::size_t tile = 128;
    const auto bytes_of = [&](std::size_t r, std::size_t values_read) {
      return r * cols * values_read * sizeof(T) +
             copies * (r * cols * sizeof(F) + octet::descale_count(granularity, r, cols) * sizeof(Descale));
    };
    const std::size_t fit = tile * a.moved() / bytes_of(tile, reads);
    rows = fit > tile ? fit / tile * tile : fit > 0 ? fit : 1;
    count = octet::descale_count(granularity, rows, cols);
    bytes = static_cast<double>(bytes_of(rows, reads));
    a.begin(bytes_of(rows, 1));
    x = a.room<T>(rows * cols);
    codes = a.room<F>(rows * cols);
    descales = a.room<Descale>(count);
  }

  octet::matrix_view<T> values(std::size_t turn) const { return {x[turn], rows, cols}; }
  octet::matrix_view<F> coded(std::size_t turn) const { return {codes[turn], rows, cols}; }
  octet::matrix_view<F> transposed(std::size_t turn) const { return {codes[turn], cols, rows}; }

  contest against_copy(arena& a, launch work) const {
    return {std::to_string(rows) + " x " + std::to_string(cols), bytes, 0, work, a.copy_of(bytes)};
  }
};

}  // namespace cuda_bench
