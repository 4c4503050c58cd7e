// Matrices of float: Eigen's, row-major, and the library's view of one.
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <cstddef>

#include "octet/matrix.hpp"

namespace lab {

using tensor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using row_vector = Eigen::Matrix<float, 1, Eigen::Dynamic>;

// Part of one: rows and columns in another's memory.
using tensor_part = Eigen::Map<tensor, Eigen::Unaligned, Eigen::OuterStride<>>;
using const_tensor_part = Eigen::Map<const tensor, Eigen::Unaligned, Eigen::OuterStride<>>;

inline Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }
inline std::size_t rows(const tensor& t) { return static_cast<std::size_t>(t.rows()); }
inline std::size_t cols(const tensor& t) { return static_cast<std::size_t>(t.cols()); }

inline octet::matrix_view<float> view(tensor& t) { return {t.data(), rows(t), cols(t)}; }
inline octet::matrix_view<const float> view(const tensor& t) { return {t.data(), rows(t), cols(t)}; }

inline tensor_part part(octet::matrix_view<float> m) {
  return {m.data, index(m.rows), index(m.cols), Eigen::OuterStride<>(index(m.row_stride))};
}
inline const_tensor_part part(octet::matrix_view<const float> m) {
  return {m.data, index(m.rows), index(m.cols), Eigen::OuterStride<>(index(m.row_stride))};
}

// Columns first to first + count - 1.
template <class T>
octet::matrix_view<T> column_range(octet::matrix_view<T> m, std::size_t first, std::size_t count) {
  return {m.data + first, m.rows, count, m.row_stride};
}

}  // namespace lab
