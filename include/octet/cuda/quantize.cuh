// Quantizing on the device, with the functions, bytes and descales of octet/quantize.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include <cub/warp/warp_reduce.cuh>

#include "kernels.cuh"

namespace octet {
inline namespace v0 {
namespace cuda {

// In all of these: matrices are row-major [rows, cols] in device memory; T is float, octet::float16, octet::bfloat16 or
// another 16-bit float; F is any signed format. Codes are rounded to nearest even and saturate; NaN becomes the format's
// NaN. What they return is listed in kernels.cuh.

namespace detail {

// -- Arguments -------------------------------------------------------------------------------------------------------

template <class F, class T, class Descale>
OCTET_HOST_INLINE constexpr void require_types() {
  require_codes<F>();
  require_values<T>();
  static_assert(F::is_signed, "E8M0 holds scales, not scaled values");
  static_assert(std::is_same_v<Descale, descale> || std::is_same_v<Descale, e8m0>,
                "descales are octet::descale or octet::e8m0; octet::as_descales takes floats for descales");
}

template <class Granularity>
OCTET_HOST_INLINE bool is_granularity(const Granularity&) {
  return true;
}
OCTET_HOST_INLINE bool is_granularity(const per_channel& g) { return g.axis == 0 || g.axis == 1; }

// Of the shapes, and of a rule. A descale that is stored as a power of two must be one before it is used.
template <class A, class B>
OCTET_HOST_INLINE bool same_shape(const matrix_view<A>& a, const matrix_view<B>& b) {
  return a.rows == b.rows && a.cols == b.cols;
}
template <class Descale>
OCTET_HOST_INLINE cudaError_t check(const scale_rule& rule) {
  if (rule.on_nonfinite == nonfinite::reject) return cudaErrorNotSupported;
  const bool fits = std::is_same_v<Descale, descale> || rule.form >= descale_form::e8m0_up;
  return fits && octet::detail::fault_of(rule) == nullptr ? cudaSuccess : cudaErrorInvalidValue;
}

// Elements from the first to behind the last; 0 if the strides don't fit.
template <class T>
OCTET_HOST_INLINE std::size_t checked_extent(const matrix_view<T>& m) {
  return m.row_stride >= m.cols && octet::detail::is_addressable(m) ? m.extent() : 0;
}

// Of a matrix with elements, an output, and `count` descales, which are read (const) or written.
template <class In, class Out, class Descale>
OCTET_LOCAL cudaError_t check(const matrix_view<In>& in, const matrix_view<Out>& out, Descale* descales,
                              std::size_t count) {
  const std::size_t in_n = checked_extent(in), out_n = checked_extent(out);
  if (const cudaError_t error = check(in.data, in_n, out.data, out_n); error != cudaSuccess) return error;
  if (const cudaError_t error = check(descales, count, out.data, out_n); error != cudaSuccess) return error;
  return std::is_const_v<Descale> ? cudaSuccess : check(in.data, in_n, descales, count);
}

// Swizzled blocks have room for tiles that are not there, whose descales are 0.
template <class Descale>
OCTET_LOCAL cudaError_t clear_what_is_left(const descale_view<Descale>& d, std::size_t tile_rows, std::size_t tile_cols,
                                           cudaStream_t stream) {
  if (!d.swizzled) return cudaSuccess;
  return cudaMemsetAsync(d.data, 0, d.extent(tile_rows, tile_cols) * sizeof(Descale), stream);
}

template <class Granularity>
inline constexpr bool takes_workspace =
    std::is_same_v<Granularity, per_tensor> || std::is_same_v<Granularity, per_channel>;

// A pointer to the descales of a matrix in the order of the host.
template <class Descale, class Granularity, class T>
OCTET_HOST_INLINE descale_view<Descale> in_order(Descale* descales, const Granularity& granularity,
                                                 const matrix_view<T>& m) {
  return row_major(descales, granularity.tiles(m.rows, m.cols).cols.count(m.cols));
}

// Whether the kernels can take slices of many values, in accesses of 16 bytes.
template <class T, class F>
OCTET_HOST_INLINE bool takes_slices(const matrix_view<T>& in, const matrix_view<F>& out, const tiling& t) {
  return is_wide(in) && is_wide(out) && cuts_between_slices<values_a_thread>(t.cols, in.cols);
}

// -- A team of threads a tile ----------------------------------------------------------------------------------------

// Threads of a block whose teams are parts of a warp, or the block.
template <int Team>
inline constexpr unsigned block_of = Team > 32 ? Team : threads_a_block;

// The largest of what the threads of a team have, for each of them.
template <int Team>
__device__ __forceinline__ std::uint32_t largest_of_team(std::uint32_t mine) {
  if constexpr (Team == 1) {
    return mine;
  } else if constexpr (Team <= 32) {
    using reduction = cub::WarpReduce<std::uint32_t, Team>;
    __shared__ typename reduction::TempStorage shared[threads_a_block / Team];
    const std::uint32_t largest = reduction(shared[threadIdx.x / Team]).Reduce(mine, larger{});
    return __shfl_sync(0xFFFFFFFF, largest, 0, Team);
  } else {
    using reduction = cub::BlockReduce<std::uint32_t, Team>;
    __shared__ typename reduction::TempStorage shared;
    __shared__ std::uint32_t of_all;
    const std::uint32_t largest = reduction(shared).Reduce(mine, larger{});
    if (threadIdx.x == 0) of_all = largest;
    __syncthreads();
    return of_all;
  }
}

// Tiles are numbered row by row.
template <int N, int Team, int Held, bool Again, class F, class T, class Rows, class Descale>
OCTET_LOCAL __global__ void __launch_bounds__(block_of<Team>)
    quantize_tiles_kernel(matrix_view<const T> in, tiling t, scale_rule rule, Rows to, descale_view<Descale> descales,
                          std::size_t tile_rows, std::size_t tile_cols) {
  const std::size_t number = thread_number() / Team;
  const std::size_t i = tile_cols == 1 ? number : number / tile_cols, j = number - i * tile_cols;
  const std::size_t lane = threadIdx.x % Team;
  const bool is_tile = i < tile_rows;
  const tile_slices<N> tile = is_tile ? tile_slices<N>::of(t, in.rows, in.cols, i, j) : tile_slices<N>{0, 0, 0, 0, 1};
  tile_share<N, Team, Held, Again, T> share;
  const std::uint32_t amax = largest_of_team<Team>(share.read(in, tile, lane, rule.on_nonfinite == nonfinite::ignore));
  if (!is_tile) return;
  const group_scale s = scale_of<F>(bit_cast<float>(amax), rule);
  if (lane == 0 && to.row(tile.first_row) != nullptr)
    descales.data[descales.index(to.descale_row(i), j)] = stored_as<Descale>(s.stored);
  share.template write<F>(in, tile, lane, s, to);
}

// The most slices of `values_a_thread` in a tile, 0 if any number.
template <class Granularity>
inline constexpr std::size_t most_slices = 0;
template <std::size_t R, std::size_t C>
inline constexpr std::size_t most_slices<per_block<R, C>> = R*((C + values_a_thread - 1) / values_a_thread);

template <int Team>
using team = std::integral_constant<int, Team>;

// Picks the team by the tile: what it holds is read from memory once. The arguments are checked.
template <class F, std::size_t Most, class T, class Rows, class Descale>
OCTET_LOCAL cudaError_t launch_tiles(matrix_view<const T> in, const tiling& t, const scale_rule& rule, const Rows& to,
                                     bool slices, const descale_view<Descale>& descales, cudaStream_t stream) {
  const std::size_t tile_rows = t.rows.count(in.rows), tile_cols = t.cols.count(in.cols);
  if (const cudaError_t error = clear_what_is_left(descales, tile_rows, tile_cols, stream); error != cudaSuccess)
    return error;
  const auto start = [&](auto kernel, auto team) {
    return launch<block_of<team()>>(kernel, tile_rows * tile_cols * team(), stream, in, t, rule, to, descales,
                                    tile_rows, tile_cols);
  };
  const std::size_t rows = t.rows.size < in.rows ? t.rows.size : in.rows;
  const std::size_t cols = t.cols.size < in.cols ? t.cols.size : in.cols;
  constexpr int many = values_a_thread;
  constexpr auto can_be = [](std::size_t least) { return Most == 0 || Most > least; };
  if (!slices) {
    if (rows * cols <= 1024) return start(quantize_tiles_kernel<1, 32, 4, true, F, T, Rows, Descale>, team<32>{});
    return start(quantize_tiles_kernel<1, 256, 4, true, F, T, Rows, Descale>, team<256>{});
  }
  // A thread has 64 bytes of a tile at least, where that has them: two slices of 16-bit values, one of floats.
  constexpr int held = 4 / static_cast<int>(sizeof(T)), few = 2 / held, some = 8 / held;
  const std::size_t count = rows * ((cols + many - 1) / many);
  if (count <= 2) return start(quantize_tiles_kernel<many, few, held, false, F, T, Rows, Descale>, team<few>{});
  if constexpr (can_be(2))
    if (count <= 8) return start(quantize_tiles_kernel<many, some, held, false, F, T, Rows, Descale>, team<some>{});
  if constexpr (can_be(8))
    if (count <= 128) return start(quantize_tiles_kernel<many, 32, 4, false, F, T, Rows, Descale>, team<32>{});
  if constexpr (can_be(128))
    if (count <= 512) return start(quantize_tiles_kernel<many, 128, 4, false, F, T, Rows, Descale>, team<128>{});
  if constexpr (can_be(512)) return start(quantize_tiles_kernel<many, 256, 4, true, F, T, Rows, Descale>, team<256>{});
  return cudaErrorInvalidValue;  // not reached: a tile has no more slices than its granularity says
}

// -- Scales that are there already -----------------------------------------------------------------------------------

template <int N, class F, class T, class Scales, class Rows>
OCTET_LOCAL __global__ void __launch_bounds__(threads_a_block)
    quantize_slices_kernel(matrix_view<const T> in, tiling t, Scales scales, Rows to) {
  quantize_slice<N, F>(in, t, scales, to, thread_number());
}
template <int N, class T, class F, class Descale>
OCTET_LOCAL __global__ void __launch_bounds__(threads_a_block)
    dequantize_slices_kernel(matrix_view<const F> codes, tiling t, descale_view<const Descale> descales,
                             matrix_view<T> out) {
  dequantize_slice<N>(codes, t, descales, out, thread_number());
}
template <int N, class T>
OCTET_LOCAL __global__ void __launch_bounds__(threads_a_block)
    column_amax_kernel(matrix_view<const T> in, float* amax, bool of_finite) {
  const auto patch = column_patch<N>::of(in.rows, in.cols, thread_number());
  if (patch.row >= in.rows) return;
  const pack<std::uint32_t, N> largest = column_amax_bits<N>(in, patch, of_finite);
  for (int k = 0; k < N; ++k)
    if (patch.col + static_cast<std::size_t>(k) < in.cols)
      atomicMax(reinterpret_cast<unsigned*>(amax) + patch.col + k, largest.value[k]);
}
template <int N, class F, class T, class Scales>
OCTET_LOCAL __global__ void __launch_bounds__(threads_a_block)
    quantize_columns_kernel(matrix_view<const T> in, Scales scales, matrix_view<F> codes) {
  quantize_columns<N>(in, scales, codes, column_patch<N>::of(in.rows, in.cols, thread_number()));
}

// A descale a column, or tiles that are wider.
OCTET_HOST_INLINE bool is_of_columns(const tiling& t, std::size_t rows, std::size_t cols) {
  return t.rows.count(rows) == 1 && t.cols.size == 1 && cols > 1;
}

template <class F, class T, class Scales>
OCTET_LOCAL cudaError_t launch_scaled(matrix_view<const T> in, const tiling& t, const Scales& scales,
                                      matrix_view<F> codes, cudaStream_t stream) {
  constexpr int many = values_a_thread, some = 4;  // a column has a scale in registers of its own
  if (is_of_columns(t, in.rows, in.cols)) {
    if (is_wide(in) && is_wide(codes))
      return launch(quantize_columns_kernel<some, F, T, Scales>, column_patch<some>::count(in.rows, in.cols), stream,
                    in, scales, codes);
    return launch(quantize_columns_kernel<1, F, T, Scales>, column_patch<1>::count(in.rows, in.cols), stream, in,
                  scales, codes);
  }
  const matrix_rows<F> to{codes};
  if (takes_slices(in, codes, t))
    return launch(quantize_slices_kernel<many, F, T, Scales, matrix_rows<F>>, in.rows * ((in.cols + many - 1) / many),
                  stream, in, t, scales, to);
  return launch(quantize_slices_kernel<1, F, T, Scales, matrix_rows<F>>, in.rows * in.cols, stream, in, t, scales, to);
}

// The amaxes of a tensor or of its columns. (Rows have theirs found by teams.)
template <class T>
OCTET_LOCAL cudaError_t launch_amaxes(matrix_view<const T> in, const tiling& t, float* amax, bool of_finite,
                                      cudaStream_t stream) {
  if (!is_of_columns(t, in.rows, in.cols)) return launch_amax(in, amax, of_finite, stream);
  if (const cudaError_t error = cudaMemsetAsync(amax, 0, in.cols * sizeof *amax, stream); error != cudaSuccess)
    return error;
  constexpr int some = 4;
  if (is_wide(in))
    return launch(column_amax_kernel<some, T>, column_patch<some>::count(in.rows, in.cols), stream, in, amax,
                  of_finite);
  return launch(column_amax_kernel<1, T>, column_patch<1>::count(in.rows, in.cols), stream, in, amax, of_finite);
}

}  // namespace detail

// Descales found, a tile that a team of threads can share: per_token{}, per_block<R, C>{}. descales: written, a
// descale_view, or a pointer to descale_count(granularity, rows, cols) of them in the order of the host; E8M0 only by a
// rule whose descales are powers of two. Codes and descales are those of octet::quantize_into. On the fast road a tile of
// up to 16,384 values is read from memory once. (Swizzled descales are cleared in the stream before.)
template <class F, class T, class Granularity, class Descale>
OCTET_LOCAL cudaError_t quantize_into(matrix_view<T> in, const Granularity& granularity, const scale_rule& rule,
                                      matrix_view<F> codes, descale_view<Descale> descales,
                                      cudaStream_t stream = nullptr) {
  using Value = std::remove_const_t<T>;
  detail::require_types<F, Value, Descale>();
  static_assert(!detail::takes_workspace<Granularity>, "per_tensor and per_channel take a workspace: float* amax");
  if (!detail::same_shape(in, codes)) return cudaErrorInvalidValue;
  if (in.empty()) return cudaSuccess;
  if (const cudaError_t error = detail::check<Descale>(rule); error != cudaSuccess) return error;
  const tiling t = granularity.tiles(in.rows, in.cols);
  const std::size_t count = descales.extent(t.rows.count(in.rows), t.cols.count(in.cols));
  if (const cudaError_t error = detail::check(in, codes, descales.data, count); error != cudaSuccess) return error;
  return detail::launch_tiles<F, detail::most_slices<Granularity>>(
      matrix_view<const Value>(in), t, rule, detail::matrix_rows<F>{codes}, detail::takes_slices(in, codes, t),
      descales, stream);
}
template <class F, class T, class Granularity, class Descale>
OCTET_LOCAL cudaError_t quantize_into(matrix_view<T> in, const Granularity& granularity, const scale_rule& rule,
                                      matrix_view<F> codes, Descale* descales, cudaStream_t stream = nullptr) {
  return cuda::quantize_into(in, granularity, rule, codes, detail::in_order(descales, granularity, in), stream);
}

// Descales found, of the tensor or of each channel: per_tensor{}, per_channel{axis}. amax: workspace of as many floats as
// there are descales, cleared in the stream; afterwards it holds the amaxes of the tensor or of its columns (rows do not
// need it). The tensor is read twice, in rows once. descales: written.
template <class F, class T, class Granularity, std::enable_if_t<detail::takes_workspace<Granularity>, int> = 0>
OCTET_LOCAL cudaError_t quantize_into(matrix_view<T> in, const Granularity& granularity, const scale_rule& rule,
                                      matrix_view<F> codes, descale* descales, float* amax,
                                      cudaStream_t stream = nullptr) {
  using Value = std::remove_const_t<T>;
  detail::require_types<F, Value, descale>();
  if (!detail::same_shape(in, codes) || !detail::is_granularity(granularity)) return cudaErrorInvalidValue;
  if (in.empty()) return cudaSuccess;
  if (const cudaError_t error = detail::check<descale>(rule); error != cudaSuccess) return error;
  const tiling t = granularity.tiles(in.rows, in.cols);
  const std::size_t tile_cols = t.cols.count(in.cols), count = t.rows.count(in.rows) * tile_cols;
  if (const cudaError_t error = detail::check(in, codes, descales, count); error != cudaSuccess) return error;
  if (const cudaError_t error = detail::check(in, codes, amax, count); error != cudaSuccess) return error;
  if (const cudaError_t error = detail::check(descales, count, amax, count); error != cudaSuccess) return error;
  const matrix_view<const Value> from(in);
  if (count == in.rows && count > 1 && tile_cols == 1)
    return detail::launch_tiles<F, 0>(from, t, rule, detail::matrix_rows<F>{codes}, detail::takes_slices(in, codes, t),
                                      row_major(descales, 1), stream);
  const bool of_finite = rule.on_nonfinite == nonfinite::ignore;
  if (const cudaError_t error = detail::launch_amaxes(from, t, amax, of_finite, stream); error != cudaSuccess)
    return error;
  return detail::launch_scaled(from, t, detail::found_scales<F>{amax, tile_cols, rule, descales}, codes, stream);
}

// Descales given, in device memory: a descale_view, or a pointer to descale_count(granularity, rows, cols) of them in the
// order of the host. The bytes of octet::quantize_into with the same descales; they are not looked at, and one that is
// not finite and above zero makes codes of no meaning. how: divide by the descale, or multiply by its reciprocal.
template <class F, class T, class Granularity, class Descale>
OCTET_LOCAL cudaError_t quantize_into(matrix_view<T> in, const Granularity& granularity, descale_view<Descale> descales,
                                      matrix_view<F> codes, scaling how = scaling::divide,
                                      cudaStream_t stream = nullptr) {
  using Value = std::remove_const_t<T>;
  using Given = std::remove_const_t<Descale>;
  detail::require_types<F, Value, Given>();
  if (!detail::same_shape(in, codes) || !detail::is_granularity(granularity)) return cudaErrorInvalidValue;
  if (in.empty()) return cudaSuccess;
  const tiling t = granularity.tiles(in.rows, in.cols);
  const descale_view<const Given> given(descales);
  const std::size_t count = given.extent(t.rows.count(in.rows), t.cols.count(in.cols));
  if (const cudaError_t error = detail::check(in, codes, given.data, count); error != cudaSuccess) return error;
  return detail::launch_scaled(matrix_view<const Value>(in), t, detail::given_scales<Given>{given, how}, codes, stream);
}
template <class F, class T, class Granularity, class Descale>
OCTET_LOCAL cudaError_t quantize_into(matrix_view<T> in, const Granularity& granularity, const Descale* descales,
                                      matrix_view<F> codes, scaling how = scaling::divide,
                                      cudaStream_t stream = nullptr) {
  return cuda::quantize_into(in, granularity, detail::in_order(descales, granularity, in), codes, how, stream);
}

// out = code * descale, rounded once to T, to nearest even: the values of octet::dequantize_into. out: [rows, cols].
template <class F, class Granularity, class Descale, class T>
OCTET_LOCAL cudaError_t dequantize_into(matrix_view<F> codes, const Granularity& granularity,
                                        descale_view<Descale> descales, matrix_view<T> out,
                                        cudaStream_t stream = nullptr) {
  using Code = std::remove_const_t<F>;
  using Given = std::remove_const_t<Descale>;
  detail::require_types<Code, T, Given>();
  if (!detail::same_shape(codes, out) || !detail::is_granularity(granularity)) return cudaErrorInvalidValue;
  if (out.empty()) return cudaSuccess;
  const tiling t = granularity.tiles(out.rows, out.cols);
  const descale_view<const Given> given(descales);
  const std::size_t count = given.extent(t.rows.count(out.rows), t.cols.count(out.cols));
  if (const cudaError_t error = detail::check(codes, out, given.data, count); error != cudaSuccess) return error;
  constexpr int many = detail::values_a_thread;
  const matrix_view<const Code> from(codes);
  if (detail::takes_slices(codes, out, t))
    return detail::launch(detail::dequantize_slices_kernel<many, T, Code, Given>,
                          out.rows * ((out.cols + many - 1) / many), stream, from, t, given, out);
  return detail::launch(detail::dequantize_slices_kernel<1, T, Code, Given>, out.rows * out.cols, stream, from, t,
                        given, out);
}
template <class F, class Granularity, class Descale, class T>
OCTET_LOCAL cudaError_t dequantize_into(matrix_view<F> codes, const Granularity& granularity, const Descale* descales,
                                        matrix_view<T> out, cudaStream_t stream = nullptr) {
  return cuda::dequantize_into(codes, granularity, detail::in_order(descales, granularity, codes), out, stream);
}

}  // namespace cuda
}  // namespace v0
}  // namespace octet
