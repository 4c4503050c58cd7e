// Quantizing the transpose of a matrix, alone or with the matrix: what a backward pass or a product of other layout wants.
// SPDX-License-Identifier: MIT
#pragma once

#include "quantize.cuh"

namespace octet {
inline namespace v0 {
namespace cuda {

namespace detail {

// Patches side by side that are as wide as a tile of C columns.
template <std::size_t C>
inline constexpr std::size_t strip_of = C > transposed_patch::cols ? C / transposed_patch::cols : 1;

// What is written: the codes of a matrix or of its transpose, with the scales of its tiles.
template <class F, class Scales>
struct quantized_copy {
  tiling t;
  Scales scales;
  matrix_view<F> codes;
  bool one_scale, is_wide;  // no slice lies in two tiles; a slice can be stored as one

  OCTET_HOST_INLINE quantized_copy(const tiling& tiles, const Scales& its, matrix_view<F> to)
      : t(tiles),
        scales(its),
        codes(to),
        one_scale(cuts_between_slices<transposed_patch::values>(tiles.cols, to.cols)),
        is_wide(detail::is_wide(to)) {}
};

// The codes of `Held` slices in a row, the first at (row, col), each a patch's columns beyond the one before. Team threads,
// neighbours, have all slices of a tile; 0: the scales are there already.
template <int Team, int Held, class F, class Scales>
__device__ __forceinline__ void write_slices(const pack<float, transposed_patch::values> (&x)[Held],
                                             quantized_copy<F, Scales> to, std::size_t row, std::size_t col) {
  if constexpr (Team > 0) {
    std::uint32_t amax = 0;
    OCTET_UNROLL
    for (int i = 0; i < Held; ++i) amax = larger{}(amax, amax_bits(x[i], to.scales.of_finite()));
    to.scales.find(largest_of_team<Team>(amax));
  }
  if (row >= to.codes.rows || col >= to.codes.cols) return;
  if constexpr (Team > 0)
    if (threadIdx.x % Team == 0) to.scales.note(to.t.rows.tile(row), to.t.cols.tile(col));
  OCTET_UNROLL
  for (int i = 0; i < Held && col < to.codes.cols; ++i, col += transposed_patch::cols) {
    const auto q = quantize_in_row<F>(x[i], to.t, to.scales, row, col, to.codes.cols, to.one_scale);
    F* const p = to.codes.row(row) + col;
    const std::size_t there = to.codes.cols - col;
    if (to.is_wide)
      store(p, q, there);
    else
      for (std::size_t k = 0; k < transposed_patch::values && k < there; ++k) p[k] = q.value[k];
  }
}

template <int Team, class F, class T, class Scales>
OCTET_LOCAL __global__ void __launch_bounds__(transposed_patch::threads)
    quantize_transposed_kernel(matrix_view<const T> in, quantized_copy<F, Scales> transposed) {
  __shared__ float shared[transposed_patch::words];
  const auto patch = transposed_patch::of(in.cols, blockIdx.x);
  patch.read(in, threadIdx.x, shared);
  __syncthreads();
  const pack<float, transposed_patch::values> x[] = {transposed_patch::slice(shared, threadIdx.x)};
  write_slices<Team>(x, transposed, patch.row(threadIdx.x), patch.col(threadIdx.x));
}

// Both copies, in tiles of a row and C columns each; 0: the scales are there already. A block has a strip of patches as wide
// as a tile, one after another in shared memory; the slices of the rows wait in registers until the strip is read.
template <std::size_t C, class F, class T, class Scales>
OCTET_LOCAL __global__ void __launch_bounds__(transposed_patch::threads)
    quantize_with_transpose_kernel(matrix_view<const T> in, quantized_copy<F, Scales> straight,
                                   quantized_copy<F, Scales> transposed) {
  constexpr int values = transposed_patch::values, strip = static_cast<int>(strip_of<C>),
                team = static_cast<int>(C) / values;
  __shared__ float shared[transposed_patch::words];
  auto patch = transposed_patch::of(in.cols, blockIdx.x, strip);
  const std::size_t row = patch.straight_row(threadIdx.x), col = patch.straight_col(threadIdx.x);
  pack<float, values> held[strip];
  OCTET_UNROLL
  for (int i = 0; i < strip; ++i, patch = patch.next()) {
    if (i > 0) __syncthreads();
    patch.read(in, threadIdx.x, shared);
    __syncthreads();
    held[i] = transposed_patch::straight_slice(shared, threadIdx.x);
    const pack<float, values> x[] = {transposed_patch::slice(shared, threadIdx.x)};
    write_slices<team>(x, transposed, patch.row(threadIdx.x), patch.col(threadIdx.x));
  }
  write_slices<(team < 2 ? team : 2)>(held, straight, row, col);
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
OCTET_LOCAL cudaError_t launch_transposed(matrix_view<const T> in, const quantized_copy<F, Scales>& transposed,
                                          cudaStream_t stream) {
  return launch(quantize_transposed_kernel<Team, F, T, Scales>,
                transposed_patch::count(in.rows, in.cols) * transposed_patch::threads, stream, in, transposed);
}
template <std::size_t C, class F, class T, class Scales>
OCTET_LOCAL cudaError_t launch_with_transpose(matrix_view<const T> in, const quantized_copy<F, Scales>& straight,
                                              const quantized_copy<F, Scales>& transposed, cudaStream_t stream) {
  return launch(quantize_with_transpose_kernel<C, F, T, Scales>,
                transposed_patch::count(in.rows, in.cols, strip_of<C>) * transposed_patch::threads, stream, in,
                straight, transposed);
}

template <class A, class B>
OCTET_HOST_INLINE bool turned_shape(const matrix_view<A>& a, const matrix_view<B>& b) {
  return a.rows == b.cols && a.cols == b.rows;
}

// What tiles of C columns can be found by teams, and with which rule.
template <class Descale, std::size_t C>
OCTET_HOST_INLINE cudaError_t check_found(const per_block<1, C>& granularity, const scale_rule& rule) {
  static_assert(C == 16 || C == 32 || C == 64 || C == 128, "other descales: find them first, then give them");
  return granularity.first_col % C != 0 ? cudaErrorNotSupported : check<Descale>(rule);
}

// Of a matrix with elements and of two copies that are made of it: `count` and `transposed_count` descales, which are read
// (const) or written.
template <class T, class F, class Descale>
OCTET_LOCAL cudaError_t check_copies(const matrix_view<T>& in, const matrix_view<F>& codes, Descale* descales,
                                     std::size_t count, const matrix_view<F>& transposed, Descale* transposed_descales,
                                     std::size_t transposed_count) {
  const cudaError_t errors[] = {
      check(in, codes, descales, count), check(in, transposed, transposed_descales, transposed_count),
      check(codes, transposed, descales, count), check(transposed, codes, transposed_descales, transposed_count),
      std::is_const_v<Descale> ? cudaSuccess : check(descales, count, transposed_descales, transposed_count)};
  for (const cudaError_t error : errors)
    if (error != cudaSuccess) return error;
  return cudaSuccess;
}

}  // namespace detail

// -- The transpose alone ---------------------------------------------------------------------------------------------

// in: [rows, cols]; codes: [cols, rows]. The granularity, its descales and the bytes are those of
// cuda::quantize_into of the transpose of `in`: per_block<1, 128>{} has a descale for 128 rows of a column.

// Descales found: per_block<1, C>{} with C = 16, 32, 64 or 128, which begins with a whole block (else
// cudaErrorNotSupported); descales are a descale_view or a pointer, octet::descale or octet::e8m0. The input is read once.
template <class F, class T, std::size_t C, class Descale>
OCTET_LOCAL cudaError_t quantize_transposed_into(matrix_view<T> in, const per_block<1, C>& granularity,
                                                 const scale_rule& rule, matrix_view<F> codes,
                                                 descale_view<Descale> descales, cudaStream_t stream = nullptr) {
  using Value = std::remove_const_t<T>;
  detail::require_types<F, Value, Descale>();
  if (!detail::turned_shape(in, codes)) return cudaErrorInvalidValue;
  if (in.empty()) return cudaSuccess;
  if (const cudaError_t error = detail::check_found<Descale>(granularity, rule); error != cudaSuccess) return error;
  const tiling t = granularity.tiles(codes.rows, codes.cols);
  const std::size_t tile_rows = t.rows.count(codes.rows), tile_cols = t.cols.count(codes.cols);
  if (const cudaError_t error = detail::check(in, codes, descales.data, descales.extent(tile_rows, tile_cols));
      error != cudaSuccess)
    return error;
  if (const cudaError_t error = detail::clear_what_is_left(descales, tile_rows, tile_cols, stream);
      error != cudaSuccess)
    return error;
  using found = detail::team_scale<F, Descale>;
  return detail::launch_transposed<C / detail::transposed_patch::values>(
      matrix_view<const Value>(in), detail::quantized_copy<F, found>(t, {descales, rule, {}}, codes), stream);
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
  if (!detail::turned_shape(in, codes) || !detail::is_granularity(granularity)) return cudaErrorInvalidValue;
  if (in.empty()) return cudaSuccess;
  const tiling t = granularity.tiles(codes.rows, codes.cols);
  const descale_view<const Given> given(descales);
  const std::size_t count = given.extent(t.rows.count(codes.rows), t.cols.count(codes.cols));
  if (const cudaError_t error = detail::check(in, codes, given.data, count); error != cudaSuccess) return error;
  using scales = detail::given_scales<Given>;
  return detail::launch_transposed<0>(matrix_view<const Value>(in),
                                      detail::quantized_copy<F, scales>(t, {given, how}, codes), stream);
}
template <class F, class T, class Granularity, class Descale>
OCTET_LOCAL cudaError_t quantize_transposed_into(matrix_view<T> in, const Granularity& granularity,
                                                 const Descale* descales, matrix_view<F> codes,
                                                 scaling how = scaling::divide, cudaStream_t stream = nullptr) {
  return cuda::quantize_transposed_into(in, granularity, detail::in_order(descales, granularity, codes), codes, how,
                                        stream);
}

// -- Both copies -----------------------------------------------------------------------------------------------------

// The codes of `in` and of its transpose, the input read once: the bytes of cuda::quantize_into and of
// cuda::quantize_transposed_into. codes: [rows, cols]; transposed: [cols, rows]. Descales are descale_views, or pointers to
// descale_count(granularity, rows, cols) and descale_count(granularity, cols, rows) of them in the order of the host.

// Descales found, in both directions: per_block<1, C>{} as above. MX has a power of two for 32 values of a row and one for
// 32 of a column.
template <class F, class T, std::size_t C, class Descale>
OCTET_LOCAL cudaError_t quantize_with_transpose_into(matrix_view<T> in, const per_block<1, C>& granularity,
                                                     const scale_rule& rule, matrix_view<F> codes,
                                                     descale_view<Descale> descales, matrix_view<F> transposed,
                                                     descale_view<Descale> transposed_descales,
                                                     cudaStream_t stream = nullptr) {
  using Value = std::remove_const_t<T>;
  detail::require_types<F, Value, Descale>();
  if (!detail::same_shape(in, codes) || !detail::turned_shape(in, transposed)) return cudaErrorInvalidValue;
  if (in.empty()) return cudaSuccess;
  if (const cudaError_t error = detail::check_found<Descale>(granularity, rule); error != cudaSuccess) return error;
  const tiling t = granularity.tiles(in.rows, in.cols), turned = granularity.tiles(in.cols, in.rows);
  const std::size_t cols = t.cols.count(in.cols), turned_cols = turned.cols.count(in.rows);
  if (const cudaError_t error =
          detail::check_copies(in, codes, descales.data, descales.extent(in.rows, cols), transposed,
                               transposed_descales.data, transposed_descales.extent(in.cols, turned_cols));
      error != cudaSuccess)
    return error;
  if (const cudaError_t error = detail::clear_what_is_left(descales, in.rows, cols, stream); error != cudaSuccess)
    return error;
  if (const cudaError_t error = detail::clear_what_is_left(transposed_descales, in.cols, turned_cols, stream);
      error != cudaSuccess)
    return error;
  using found = detail::team_scale<F, Descale>;
  return detail::launch_with_transpose<C>(
      matrix_view<const Value>(in), detail::quantized_copy<F, found>(t, {descales, rule, {}}, codes),
      detail::quantized_copy<F, found>(turned, {transposed_descales, rule, {}}, transposed), stream);
}
template <class F, class T, std::size_t C, class Descale>
OCTET_LOCAL cudaError_t quantize_with_transpose_into(matrix_view<T> in, const per_block<1, C>& granularity,
                                                     const scale_rule& rule, matrix_view<F> codes, Descale* descales,
                                                     matrix_view<F> transposed, Descale* transposed_descales,
                                                     cudaStream_t stream = nullptr) {
  return cuda::quantize_with_transpose_into(in, granularity, rule, codes, detail::in_order(descales, granularity, in),
                                            transposed, detail::in_order(transposed_descales, granularity, transposed),
                                            stream);
}

// Descales given, in any granularity, of the matrix and of its transpose. One scale for a tensor (delayed or static scaling)
// is both: per_tensor{} and the same pointer twice.
template <class F, class T, class Granularity, class Descale>
OCTET_LOCAL cudaError_t quantize_with_transpose_into(matrix_view<T> in, const Granularity& granularity,
                                                     descale_view<Descale> descales, matrix_view<F> codes,
                                                     descale_view<Descale> transposed_descales,
                                                     matrix_view<F> transposed, scaling how = scaling::divide,
                                                     cudaStream_t stream = nullptr) {
  using Value = std::remove_const_t<T>;
  using Given = std::remove_const_t<Descale>;
  detail::require_types<F, Value, Given>();
  if (!detail::same_shape(in, codes) || !detail::turned_shape(in, transposed) || !detail::is_granularity(granularity))
    return cudaErrorInvalidValue;
  if (in.empty()) return cudaSuccess;
  const tiling t = granularity.tiles(in.rows, in.cols), turned = granularity.tiles(in.cols, in.rows);
  const descale_view<const Given> given(descales), turned_given(transposed_descales);
  if (const cudaError_t error = detail::check_copies(
          in, codes, given.data, given.extent(t.rows.count(in.rows), t.cols.count(in.cols)), transposed,
          turned_given.data, turned_given.extent(turned.rows.count(in.cols), turned.cols.count(in.rows)));
      error != cudaSuccess)
    return error;
  using scales = detail::given_scales<Given>;
  return detail::launch_with_transpose<0>(
      matrix_view<const Value>(in), detail::quantized_copy<F, scales>(t, {given, how}, codes),
      detail::quantized_copy<F, scales>(turned, {turned_given, how}, transposed), stream);
}
template <class F, class T, class Granularity, class Descale>
OCTET_LOCAL cudaError_t quantize_with_transpose_into(matrix_view<T> in, const Granularity& granularity,
                                                     const Descale* descales, matrix_view<F> codes,
                                                     const Descale* transposed_descales, matrix_view<F> transposed,
                                                     scaling how = scaling::divide, cudaStream_t stream = nullptr) {
  return cuda::quantize_with_transpose_into(in, granularity, detail::in_order(descales, granularity, in), codes,
                                            detail::in_order(transposed_descales, granularity, transposed), transposed,
                                            how, stream);
}

}  // namespace cuda
}  // namespace v0
}  // namespace octet
