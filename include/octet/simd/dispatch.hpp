// The table of rows: which machines there are, and which of them this program runs on.
// SPDX-License-Identifier: MIT
#pragma once

#include "avx2.hpp"
#include "avx512.hpp"
#include "neon.hpp"
#include "scalar.hpp"

namespace octet {
inline namespace v0 {
namespace simd {

// Every row, the best first; a new machine is one name here.
template <class... Rows>
struct row_list {
  static constexpr std::size_t count = sizeof...(Rows);
};
#if OCTET_X86_64 && OCTET_HAS_AVX512FP16
using rows = row_list<avx512::row_with_fp16, avx512::row, avx2::row, scalar::row>;
#elif OCTET_X86_64
using rows = row_list<avx512::row, avx2::row, scalar::row>;
#elif OCTET_AARCH64
using rows = row_list<neon::row, scalar::row>;
#else
using rows = row_list<scalar::row>;
#endif

namespace tables {

// The tables hold the addresses of functions with internal linkage, so each translation unit has its own.
template <class F, class T, class... Rows>
OCTET_LOCAL const conversion<F, T>& conversion_of(std::size_t row, row_list<Rows...>) {
  static constexpr conversion<F, T> table[] = {Rows::template converts<F, T>...};
  return table[row];
}
template <class T, class... Rows>
OCTET_LOCAL const reduction<T>& reduction_of(std::size_t row, row_list<Rows...>) {
  static constexpr reduction<T> table[] = {Rows::template reduces<T>...};
  return table[row];
}
template <class F, class T, class... Rows>
OCTET_LOCAL const scaled_conversion<F, T>& scaled_conversion_of(std::size_t row, row_list<Rows...>) {
  static constexpr scaled_conversion<F, T> table[] = {Rows::template scales<F, T>...};
  return table[row];
}
template <class F, class T, class... Rows>
OCTET_LOCAL const product<F, T>& product_of(std::size_t row, row_list<Rows...>) {
  static constexpr product<F, T> table[] = {Rows::template products<F, T>...};
  return table[row];
}

template <class... Rows>
OCTET_LOCAL const char* name_of(std::size_t row, row_list<Rows...>) {
  static constexpr const char* table[] = {Rows::name...};
  return table[row];
}
template <class... Rows>
OCTET_LOCAL bool runs_here(std::size_t row, row_list<Rows...>) {
  static constexpr bool (*table[])() = {Rows::runs_here...};
  return table[row]();
}

OCTET_LOCAL std::size_t best_row() {
  std::size_t row = 0;
  while (!runs_here(row, rows{})) ++row;
  return row;
}

inline std::size_t picked_row = rows::count;  // no row: the best one

}  // namespace tables

// The rows by number, 0 to row_count - 1, the best first; not all of them run on every machine.
inline constexpr std::size_t row_count = rows::count;
OCTET_HOST_INLINE const char* row_name(std::size_t row) { return tables::name_of(row, rows{}); }
OCTET_HOST_INLINE bool row_runs_here(std::size_t row) { return tables::runs_here(row, rows{}); }

// The row in use: the best that runs here, found once, unless pick_row chose another.
OCTET_LOCAL std::size_t row_in_use() {
  static const std::size_t best = tables::best_row();
  return tables::picked_row < row_count ? tables::picked_row : best;
}

// Uses this row, which must run here, in the whole program from now on; row_count (or any other number that is no row)
// goes back to the best. Every row gives the same bytes, but for the last bits of sums (gemv.hpp). Not synchronised:
// pick before the threads start.
OCTET_HOST_INLINE void pick_row(std::size_t row) { tables::picked_row = row; }

// The kernels in use.
template <class F, class T>
OCTET_HOST_INLINE const conversion<F, T>& converts() {
  return tables::conversion_of<F, T>(row_in_use(), rows{});
}
template <class T>
OCTET_HOST_INLINE const reduction<T>& reduces() {
  return tables::reduction_of<T>(row_in_use(), rows{});
}
template <class F, class T>
OCTET_HOST_INLINE const scaled_conversion<F, T>& scales() {
  return tables::scaled_conversion_of<F, T>(row_in_use(), rows{});
}
template <class F, class T>
OCTET_HOST_INLINE const product<F, T>& products() {
  return tables::product_of<F, T>(row_in_use(), rows{});
}

}  // namespace simd
}  // namespace v0
}  // namespace octet
