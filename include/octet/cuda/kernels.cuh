// Kernels over many values, encode, decode and amax, and what every launcher does.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <cub/block/block_reduce.cuh>

#include "tiles.cuh"

namespace octet {
inline namespace v0 {
namespace cuda {

// A launcher checks its arguments, starts kernels on the caller's stream and returns: it allocates nothing, waits for
// nothing, and can be captured in a graph. All pointers are to device memory. It returns
//   cudaSuccess                    started; also for no values at all, with any pointers
//   cudaErrorInvalidValue          a null pointer, an output that overlaps an input or another output, shapes that differ,
//                                  strides that are too small, a size beyond the address space, a scale_rule that gives
//                                  no scale
//   cudaErrorMisalignedAddress     a pointer that is not a multiple of its element's size
//   cudaErrorNotSupported          nonfinite::reject: only the host looks before it writes
//   cudaErrorInvalidConfiguration  more threads than a grid has (2^39)
//   what CUDA says                 no device, or one this code was not compiled for
// Launchers and kernels have internal linkage: a unit launches what was compiled with its own flags, for its own GPUs.
// Where an argument is at fault nothing is written. Rows that begin at multiples of 16 bytes take the fast road: 16
// values a thread, in accesses of 16 bytes.

namespace detail {

constexpr unsigned threads_a_block = 256;
constexpr int values_a_thread = 16;

__device__ __forceinline__ std::size_t thread_number() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
template <int N, class F, class T>
OCTET_LOCAL __global__ void __launch_bounds__(threads_a_block)
    encode_kernel(const T* x, F* codes, std::size_t n, overflow o) {
  encode_slice<N>(x, codes, n, thread_number(), o);
}
template <int N, class F, class T>
OCTET_LOCAL __global__ void __launch_bounds__(threads_a_block) decode_kernel(const F* codes, T* x, std::size_t n) {
  decode_slice<N>(codes, x, n, thread_number());
}

// Starts so many threads, in blocks of Block.
template <unsigned Block = threads_a_block, class... Parameters, class... Arguments>
OCTET_LOCAL cudaError_t launch(void (*kernel)(Parameters...), std::size_t threads, cudaStream_t stream,
                               Arguments... arguments) {
  const std::size_t blocks = (threads + Block - 1) / Block;
  if (blocks > 0x7FFFFFFF) return cudaErrorInvalidConfiguration;
  void* pointers[] = {&arguments...};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned>(blocks)), dim3(Block),
                          pointers, 0, stream);
}

OCTET_HOST_INLINE bool is_multiple(const void* p, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
}
OCTET_HOST_INLINE bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
  return second >= first ? second - first < a_bytes : first - second < b_bytes;
}
// Of an input of in_n elements and an output of out_n, 1 or more.
template <class In, class Out>
OCTET_LOCAL cudaError_t check(const In* in, std::size_t in_n, const Out* out, std::size_t out_n) {
  constexpr std::size_t most = static_cast<std::size_t>(-1) / 64;
  if (in == nullptr || out == nullptr || in_n == 0 || out_n == 0 || in_n > most || out_n > most)
    return cudaErrorInvalidValue;
  if (!is_multiple(in, sizeof(In)) || !is_multiple(out, sizeof(Out))) return cudaErrorMisalignedAddress;
  return overlap(in, in_n * sizeof(In), out, out_n * sizeof(Out)) ? cudaErrorInvalidValue : cudaSuccess;
}

// What the launchers take, said at compile time.
template <class T>
OCTET_HOST_INLINE constexpr void require_values() {
  static_assert(!std::is_same_v<T, double>, "double: convert to float first");
  static_assert(is_float_v<T>,
                "the values are float or a 16-bit float; make __half or __nv_bfloat16 one by octet::float_traits");
}
template <class F>
OCTET_HOST_INLINE constexpr void require_codes() {
  static_assert(is_fp8_v<F>, "the codes are octet::fp8 (and where they are written, not const)");
}

// Rows without gaps are one long row.
template <class T>
OCTET_HOST_INLINE matrix_view<T> joined(const matrix_view<T>& m) {
  return m.row_stride == m.cols ? matrix_view<T>(m.data, 1, m.rows * m.cols) : m;
}
// Whether the rows begin at multiples of 16 bytes.
template <class T>
OCTET_HOST_INLINE bool is_wide(const matrix_view<T>& m) {
  return is_multiple(m.data, 16) && (m.rows < 2 || m.row_stride * sizeof(T) % 16 == 0);
}

// A thread reads several slices of N, a block's width apart, and a block adds what it found to the amax in memory: an
// atomic operation for 32,768 values.
constexpr int slices_a_thread = 8;
template <int N, class T>
OCTET_LOCAL __global__ void __launch_bounds__(threads_a_block)
    amax_kernel(matrix_view<const T> x, float* amax, bool of_finite) {
  const std::size_t of_a_row = (x.cols + N - 1) / N, count = x.rows * of_a_row;
  const std::size_t first = std::size_t{blockIdx.x} * threads_a_block * slices_a_thread + threadIdx.x;
  std::uint32_t largest = 0;
  OCTET_UNROLL
  for (int k = 0; k < slices_a_thread; ++k)
    if (const std::size_t slice = first + std::size_t{threads_a_block} * static_cast<unsigned>(k); slice < count) {
      const std::size_t row = slice / of_a_row, col = slice % of_a_row * N;
      largest = larger{}(largest, amax_bits(load<N>(x.row(row) + col, x.cols - col), of_finite));
    }
  using reduction = cub::BlockReduce<std::uint32_t, threads_a_block>;
  __shared__ typename reduction::TempStorage shared;
  largest = reduction(shared).Reduce(largest, larger{});
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<unsigned*>(amax), largest);
}

// The arguments are checked.
template <class T>
OCTET_LOCAL cudaError_t launch_amax(matrix_view<const T> x, float* amax, bool of_finite, cudaStream_t stream) {
  if (const cudaError_t error = cudaMemsetAsync(amax, 0, sizeof *amax, stream); error != cudaSuccess) return error;
  x = joined(x);
  const auto threads = [&](std::size_t n) {
    const std::size_t slices = x.rows * ((x.cols + n - 1) / n);
    return round_up((slices + slices_a_thread - 1) / slices_a_thread, threads_a_block);
  };
  constexpr int many = values_a_thread;
  if (is_wide(x)) return launch(amax_kernel<many, T>, threads(many), stream, x, amax, of_finite);
  return launch(amax_kernel<1, T>, threads(1), stream, x, amax, of_finite);
}

}  // namespace detail

// in: n values; out: n codes, nearest even; may not overlap. Infinities, values beyond the largest and NaN as in
// octet::encode, and the same bytes.
template <class F, class T>
OCTET_LOCAL cudaError_t encode(const T* x, F* codes, std::size_t n, cudaStream_t stream = nullptr,
                               overflow o = overflow::saturate) {
  detail::require_codes<F>();
  detail::require_values<T>();
  if (n == 0) return cudaSuccess;
  if (const cudaError_t error = detail::check(x, n, codes, n); error != cudaSuccess) return error;
  constexpr int many = detail::values_a_thread;
  if (o == overflow::saturate && detail::is_multiple(x, 16) && detail::is_multiple(codes, 16))
    return detail::launch(detail::encode_kernel<many, F, T>, (n + many - 1) / many, stream, x, codes, n, o);
  return detail::launch(detail::encode_kernel<1, F, T>, n, stream, x, codes, n, o);
}

// in: n codes; out: their values, as octet::decode gives them; may not overlap.
template <class F, class T>
OCTET_LOCAL cudaError_t decode(const F* codes, T* x, std::size_t n, cudaStream_t stream = nullptr) {
  detail::require_codes<F>();
  detail::require_values<T>();
  if (n == 0) return cudaSuccess;
  if (const cudaError_t error = detail::check(codes, n, x, n); error != cudaSuccess) return error;
  constexpr int many = detail::values_a_thread;
  if (detail::is_multiple(x, 16) && detail::is_multiple(codes, 16))
    return detail::launch(detail::decode_kernel<many, F, T>, (n + many - 1) / many, stream, codes, x, n);
  return detail::launch(detail::decode_kernel<1, F, T>, n, stream, codes, x, n);
}

// The largest magnitude of n values, as octet::amax of float and the 16-bit floats has it, written to *amax, which is
// cleared in the stream first; 0 for no values.
template <class T>
OCTET_LOCAL cudaError_t amax(const T* x, std::size_t n, float* amax, cudaStream_t stream = nullptr,
                             nonfinite policy = nonfinite::propagate) {
  detail::require_values<T>();
  if (policy == nonfinite::reject) return cudaErrorNotSupported;
  if (n == 0 && amax != nullptr && detail::is_multiple(amax, sizeof *amax))
    return cudaMemsetAsync(amax, 0, sizeof *amax, stream);
  if (const cudaError_t error = detail::check(x, n, amax, 1); error != cudaSuccess) return error;
  return detail::launch_amax(matrix_view<const T>(x, 1, n), amax, policy == nonfinite::ignore, stream);
}

}  // namespace cuda
}  // namespace v0
}  // namespace octet
