// Quantizing on the device: with a scale that is there, and with one found for every token.
// SPDX-License-Identifier: MIT
#pragma once

#include <cub/block/block_reduce.cuh>

#include "kernels.cuh"

namespace octet {
inline namespace v0 {
namespace cuda {

namespace detail {

// Whether rows of `cols` values, `stride` apart, begin at multiples of 16 bytes.
template <class T>
OCTET_LOCAL bool is_wide(const T* p, std::size_t rows, std::size_t stride) {
  return is_multiple(p, 16) && (rows < 2 || stride * sizeof(T) % 16 == 0);
}

template <class T>
struct device_matrix {
  T* data;
  std::size_t stride;
};

// A block a row, blocks taking rows in turn where there are more than a grid has. The row is read twice, the second
// time from the cache, where it has just been put.
template <int N, class F, class T>
OCTET_LOCAL __global__ void __launch_bounds__(threads_a_block)
    quantize_tokens_kernel(device_matrix<const T> x, device_matrix<F> codes, descale* descales, std::size_t rows,
                           std::size_t cols, scale_rule rule) {
  using reduction = cub::BlockReduce<std::uint32_t, threads_a_block>;
  __shared__ typename reduction::TempStorage shared;
  __shared__ float amax;
  const std::size_t slices = (cols + N - 1) / N;
  for (std::size_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* const from = x.data + row * x.stride;
    std::uint32_t largest = 0;
    for (std::size_t slice = threadIdx.x; slice < slices; slice += threads_a_block) {
      const std::uint32_t found = finite_amax_bits(load<N>(from + slice * N, cols - slice * N));
      largest = found > largest ? found : largest;
    }
    largest = reduction(shared).Reduce(largest, [](std::uint32_t a, std::uint32_t b) { return a > b ? a : b; });
    if (threadIdx.x == 0) amax = bit_cast<float>(largest);
    __syncthreads();
    const group_scale s = scale_of<F>(amax, rule);
    if (threadIdx.x == 0) descales[row] = s.stored;
    for (std::size_t slice = threadIdx.x; slice < slices; slice += threads_a_block)
      quantize_slice<N>(from, codes.data + row * codes.stride, cols, slice, s);
    __syncthreads();
  }
}

template <int N, class F, class T>
OCTET_LOCAL __global__ void __launch_bounds__(threads_a_block)
    quantize_given_kernel(device_matrix<const T> x, device_matrix<F> codes, const descale* d, std::size_t rows,
                          std::size_t cols, scaling how) {
  const group_scale s = scale_of(*d, how);
  const std::size_t slices = (cols + N - 1) / N, slice = thread_number(), row = slice / slices;
  if (row < rows) quantize_slice<N>(x.data + row * x.stride, codes.data + row * codes.stride, cols, slice % slices, s);
}

// Of a matrix, an output of the same shape, and the descales, which are read or written. From the first element to
// behind the last, the gaps between rows included.
template <class F, class T, class Descale>
OCTET_LOCAL cudaError_t check(device_matrix<const T> x, device_matrix<F> codes, std::size_t rows, std::size_t cols,
                              Descale* descales, std::size_t count) {
  if (x.stride < cols || codes.stride < cols) return cudaErrorInvalidValue;
  const std::size_t in = (rows - 1) * x.stride + cols, out = (rows - 1) * codes.stride + cols;
  if (const cudaError_t error = check(x.data, in, codes.data, out); error != cudaSuccess) return error;
  if (const cudaError_t error = check(descales, count, codes.data, out); error != cudaSuccess) return error;
  return std::is_const_v<Descale> ? cudaSuccess : check(x.data, in, descales, count);
}

}  // namespace detail

// Quantizes [rows, cols] with one descale for all of it, which lies on the device (a static scale, or one a kernel
// before this one has found): codes = x / descale, saturating, to nearest even, the bytes of octet::quantize_into with
// the same descale. x_stride, codes_stride: elements from row to row, at least cols. how: divide, or multiply by the
// reciprocal. Errors as above, and cudaErrorInvalidValue for a stride below cols.
template <class F, class T>
OCTET_LOCAL cudaError_t quantize(const T* x, std::size_t x_stride, F* codes, std::size_t codes_stride, const descale* d,
                                 std::size_t rows, std::size_t cols, cudaStream_t stream = nullptr,
                                 scaling how = scaling::divide) {
  if (rows == 0 || cols == 0) return cudaSuccess;
  const detail::device_matrix<const T> in{x, x_stride};
  const detail::device_matrix<F> out{codes, codes_stride};
  if (const cudaError_t error = detail::check(in, out, rows, cols, d, 1); error != cudaSuccess) return error;
  constexpr int many = detail::values_a_thread;
  if (detail::is_wide(x, rows, x_stride) && detail::is_wide(codes, rows, codes_stride))
    return detail::launch(detail::quantize_given_kernel<many, F, T>, rows * ((cols + many - 1) / many), stream, in, out,
                          d, rows, cols, how);
  return detail::launch(detail::quantize_given_kernel<1, F, T>, rows * cols, stream, in, out, d, rows, cols, how);
}

// Quantizes [rows, cols] with a descale for each row, found from its largest finite magnitude by the rule and written
// to descales [rows]: the bytes and descales of octet::quantize_into per_token. Values that are not finite keep NaN and
// saturate, as there; rules that propagate or reject them are cudaErrorNotSupported.
template <class F, class T>
OCTET_LOCAL cudaError_t quantize_tokens(const T* x, std::size_t x_stride, F* codes, std::size_t codes_stride,
                                        descale* descales, std::size_t rows, std::size_t cols,
                                        cudaStream_t stream = nullptr, const scale_rule& rule = scale_rule()) {
  if (rule.on_nonfinite != nonfinite::ignore) return cudaErrorNotSupported;
  if (rows == 0 || cols == 0) return cudaSuccess;
  const detail::device_matrix<const T> in{x, x_stride};
  const detail::device_matrix<F> out{codes, codes_stride};
  if (const cudaError_t error = detail::check(in, out, rows, cols, descales, rows); error != cudaSuccess) return error;
  constexpr int many = detail::values_a_thread;
  constexpr std::size_t most_blocks = 0x7FFFFFFF;
  const std::size_t threads = (rows < most_blocks ? rows : most_blocks) * detail::threads_a_block;
  if (detail::is_wide(x, rows, x_stride) && detail::is_wide(codes, rows, codes_stride))
    return detail::launch(detail::quantize_tokens_kernel<many, F, T>, threads, stream, in, out, descales, rows, cols,
                          rule);
  return detail::launch(detail::quantize_tokens_kernel<1, F, T>, threads, stream, in, out, descales, rows, cols, rule);
}

}  // namespace cuda
}  // namespace v0
}  // namespace octet
