// Quantizing the transpose of a matrix, which is not in memory: what a backward pass or a product of other layout wants.
// SPDX-License-Identifier: MIT
#pragma once

#include "quantize.cuh"

namespace octet {
inline namespace v0 {
namespace cuda {

namespace detail {

// Team threads, neighbours, have a tile of the transpose; 0: the scales are there already.
template <int Team, class F, class T, class Scales>
OCTET_LOCAL __global__ void __launch_bounds__(transposed_patch::threads)
    quantize_transposed_kernel(matrix_view<const T> in, tiling t, Scales scales, matrix_view<F> codes, bool one_scale,
                               bool is_wide) {
  __shared__ float shared[transposed_patch::words];
  const auto patch = transposed_patch::of(in.cols, blockIdx.x);
  patch.read(in, threadIdx.x, shared);
  __syncthreads();
  const auto x = transposed_patch::slice(shared, threadIdx.x);
  const std::size_t row = patch.row(threadIdx.x), col = patch.col(threadIdx.x);
  if constexpr (Team > 0) scales.find(largest_of_team<Team>(amax_bits(x, scales.of_finite())));
  if (row >= codes.rows || col >= codes.cols) return;
  if constexpr (Team > 0)
    if (threadIdx.x % Team == 0) scales.note(t.rows.tile(row), t.cols.tile(col));
  const auto q = quantize_in_row<F>(x, t, scales, row, col, codes.cols, one_scale);
  F* const to = codes.row(row) + col;
  const std::size_t there = codes.cols - col;
  if (is_wide)
    store(to, q, there);
  else
    for (std::size_t k = 0; k < transposed_patch::values && k < there; ++k) to[k] = q.value[k];
}

// The scale that a team has found for its tile.
template <class F, class Descale>
struct team_scale {
  descale_view<Descale> descales;
  scale_rule rule;
  group_scale found;
  OCTET_INLINE bool of_finite() const { return rule.on_nonfinite == nonfinite::ignore; }
  OCTET_INLINE void find(std::uint32_t amax) { found = scale_of<F>(bit_cast<float>(amax), rule); }
  OCTET_INLINE group_scale scale(std::size_t, std::size_t) const { return found; }
  OCTET_INLINE void note(std::size_t i, std::size_t j) const {
    descales.data[descales.index(i, j)] = stored_as<Descale>(found.stored);
  }
};

template <int Team, class F, class T, class Scales>
OCTET_LOCAL cudaError_t launch_transposed(matrix_view<const T> in, const tiling& t, const Scales& scales,
                                          matrix_view<F> codes, cudaStream_t stream) {
  const bool one_scale = cuts_between_slices<transposed_patch::values>(t.cols, codes.cols);
  return launch(quantize_transposed_kernel<Team, F, T, Scales>,
                transposed_patch::count(in.rows, in.cols) * transposed_patch::threads, stream, in, t, scales, codes,
                one_scale, is_wide(codes));
}

}  // namespace detail

// In all of these: in: [rows, cols]; codes: [cols, rows]. The granularity, its descales and the bytes are those of
// cuda::quantize_into of the transpose of `in`: per_block<1, 128>{} has a descale for 128 rows of a column.

// Descales found: per_block<1, C>{} with C = 16, 32, 64 or 128, which begins with a whole block (else
// cudaErrorNotSupported); descales are a descale_view or a pointer, octet::descale or octet::e8m0. The input is read once.
template <class F, class T, std::size_t C, class Descale>
OCTET_LOCAL cudaError_t quantize_transposed_into(matrix_view<T> in, const per_block<1, C>& granularity,
                                                 const scale_rule& rule, matrix_view<F> codes,
                                                 descale_view<Descale> descales, cudaStream_t stream = nullptr) {
  using Value = std::remove_const_t<T>;
  detail::require_types<F, Value, Descale>();
  static_assert(C == 16 || C == 32 || C == 64 || C == 128, "other descales: find them first, then give them");
  if (in.rows != codes.cols || in.cols != codes.rows) return cudaErrorInvalidValue;
  if (in.empty()) return cudaSuccess;
  if (granularity.first_col % C != 0) return cudaErrorNotSupported;
  if (const cudaError_t error = detail::check<Descale>(rule); error != cudaSuccess) return error;
  const tiling t = granularity.tiles(codes.rows, codes.cols);
  const std::size_t tile_rows = t.rows.count(codes.rows), tile_cols = t.cols.count(codes.cols);
  if (const cudaError_t error = detail::check(in, codes, descales.data, descales.extent(tile_rows, tile_cols));
      error != cudaSuccess)
    return error;
  if (const cudaError_t error = detail::clear_what_is_left(descales, tile_rows, tile_cols, stream);
      error != cudaSuccess)
    return error;
  const detail::team_scale<F, Descale> scales{descales, rule, {}};
  return detail::launch_transposed<C / detail::transposed_patch::values>(matrix_view<const Value>(in), t, scales, codes,
                                                                         stream);
}
template <class F, class T, std::size_t C, class Descale>
OCTET_LOCAL cudaError_t quantize_transposed_into(matrix_view<T> in, const per_block<1, C>& granularity,
                                                 const scale_rule& rule, matrix_view<F> codes, Descale* descales,
                                                 cudaStream_t stream = nullptr) {
  return cuda::quantize_transposed_into(in, granularity, rule, codes, detail::in_order(descales, granularity, codes),
                                        stream);
}

// Descales given, any granularity. (Those of 128 x 128 blocks that quantize_into has found for `in` itself are the view
// {descales, 1, blocks of a row of `in`}: the transpose of theirs.)
template <class F, class T, class Granularity, class Descale>
OCTET_LOCAL cudaError_t quantize_transposed_into(matrix_view<T> in, const Granularity& granularity,
                                                 descale_view<Descale> descales, matrix_view<F> codes,
                                                 scaling how = scaling::divide, cudaStream_t stream = nullptr) {
  using Value = std::remove_const_t<T>;
  using Given = std::remove_const_t<Descale>;
  detail::require_types<F, Value, Given>();
  if (in.rows != codes.cols || in.cols != codes.rows || !detail::is_granularity(granularity))
    return cudaErrorInvalidValue;
  if (in.empty()) return cudaSuccess;
  const tiling t = granularity.tiles(codes.rows, codes.cols);
  const descale_view<const Given> given(descales);
  const std::size_t count = given.extent(t.rows.count(codes.rows), t.cols.count(codes.cols));
  if (const cudaError_t error = detail::check(in, codes, given.data, count); error != cudaSuccess) return error;
  return detail::launch_transposed<0>(matrix_view<const Value>(in), t, detail::given_scales<Given>{given, how}, codes,
                                      stream);
}
template <class F, class T, class Granularity, class Descale>
OCTET_LOCAL cudaError_t quantize_transposed_into(matrix_view<T> in, const Granularity& granularity,
                                                 const Descale* descales, matrix_view<F> codes,
                                                 scaling how = scaling::divide, cudaStream_t stream = nullptr) {
  return cuda::quantize_transposed_into(in, granularity, detail::in_order(descales, granularity, codes), codes, how,
                                        stream);
}

}  // namespace cuda
}  // namespace v0
}  // namespace octet
