// A matrix in the caller's memory: pointer, rows, columns and the distance from row to row.
// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include "errors.hpp"

namespace octet {
inline namespace v0 {

// Row-major; element (r, c) is data[r * row_stride + c]. row_stride is in elements and at least cols. Owns nothing; a
// matrix_view<T> converts to a matrix_view<const T>. Zero rows or columns are a matrix without elements, with any
// pointer.
template <class T>
struct matrix_view {
  T* data;
  std::size_t rows, cols, row_stride;

  OCTET_INLINE constexpr matrix_view(T* elements, std::size_t row_count, std::size_t col_count, std::size_t stride)
      : data(elements), rows(row_count), cols(col_count), row_stride(stride) {}
  OCTET_INLINE constexpr matrix_view(T* elements, std::size_t row_count, std::size_t col_count)
      : matrix_view(elements, row_count, col_count, col_count) {}

  template <class U = T, std::enable_if_t<!std::is_const_v<U>, int> = 0>
  OCTET_INLINE constexpr operator matrix_view<const U>() const {
    return {data, rows, cols, row_stride};
  }

  OCTET_INLINE constexpr T* row(std::size_t r) const { return data + r * row_stride; }
  OCTET_INLINE constexpr T& operator()(std::size_t r, std::size_t c) const { return row(r)[c]; }
  // Rows first to first + count - 1, in host code; an error if there are fewer.
  OCTET_HOST_INLINE constexpr matrix_view row_range(std::size_t first, std::size_t count) const {
    if (first > rows) detail::fail("row_range", "its first row", first, "is beyond the rows", rows);
    if (count > rows - first)
      detail::fail("row_range", "its rows", count, "are more than there are left:", rows - first);
    return {empty() ? data : row(first), count, cols, row_stride};
  }
  OCTET_INLINE constexpr bool empty() const { return rows == 0 || cols == 0; }
  // Elements from the first to behind the last, the gaps between rows included.
  OCTET_INLINE constexpr std::size_t extent() const { return empty() ? 0 : (rows - 1) * row_stride + cols; }
};

namespace detail {

// Whether the matrix lies within the address space.
template <class T>
OCTET_HOST_INLINE constexpr bool is_addressable(const matrix_view<T>& m) {
  constexpr std::size_t most = static_cast<std::size_t>(-1) / 2 / sizeof(T);
  return m.empty() || (m.cols <= most && m.rows - 1 <= (most - m.cols) / m.row_stride);
}

// A stride below the columns, a null pointer with elements, and a size beyond the address space are errors.
template <class T>
OCTET_HOST_INLINE void require_matrix(const char* where, const char* what, const char* its_stride,
                                      const matrix_view<T>& m) {
  require(m.row_stride >= m.cols, where, its_stride, m.row_stride, "is less than cols", m.cols);
  if (m.empty()) return;
  require(is_addressable(m), where, its_stride, m.row_stride, "is too large for rows", m.rows);
  require_pointer(where, what, m.data, m.rows, "rows");
}

template <class A, class B>
OCTET_HOST_INLINE void require_same_shape(const char* where, const matrix_view<A>& in, const char* out_has,
                                          const matrix_view<B>& out) {
  require(in.rows == out.rows, where, out_has, out.rows, "rows, the input", in.rows);
  require(in.cols == out.cols, where, out_has, out.cols, "columns, the input", in.cols);
}

}  // namespace detail
}  // namespace v0
}  // namespace octet
