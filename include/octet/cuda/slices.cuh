// What one thread of a kernel does, as host code too: so many values from memory, their codes, and back.
// SPDX-License-Identifier: MIT
#pragma once

#include "../scale.hpp"
#include "convert.cuh"

namespace octet {
inline namespace v0 {
namespace cuda {
namespace detail {

// N values from memory and to it; of the last pack only those that are there. In device code a whole pack goes in
// accesses of up to 16 bytes; `p` is a multiple of its alignment. there: how many, 1 or more.
template <int N, class T>
OCTET_INLINE pack<T, N> load(const T* p, std::size_t there) {
  pack<T, N> values{};
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof values % 16 == 0)
    if (there >= N) {
      for (unsigned i = 0; i < sizeof values / 16; ++i) {
        const uint4 words = reinterpret_cast<const uint4*>(p)[i];
        memcpy(reinterpret_cast<char*>(&values) + 16 * i, &words, 16);
      }
      return values;
    }
#endif
  for (int i = 0; i < N; ++i)
    if (static_cast<std::size_t>(i) < there) values.value[i] = p[i];
  return values;
}
template <class T, int N>
OCTET_INLINE void store(T* p, const pack<T, N>& values, std::size_t there) {
#if defined(__CUDA_ARCH__)
  if (there >= N) {
    *reinterpret_cast<pack<T, N>*>(p) = values;
    return;
  }
#endif
  for (int i = 0; i < N; ++i)
    if (static_cast<std::size_t>(i) < there) p[i] = values.value[i];
}

// What one thread does: values N * slice to N * slice + N - 1 of n, as far as they are there.
template <int N, class F, class T>
OCTET_INLINE void encode_slice(const T* x, F* codes, std::size_t n, std::size_t slice, overflow o) {
  const std::size_t first = slice * N;
  if (first >= n) return;
  if constexpr (N == 1)
    codes[first] = octet::encode<F>(x[first], o);
  else
    store(codes + first, cuda::encode<F>(load<N>(x + first, n - first)), n - first);
}
template <int N, class F, class T>
OCTET_INLINE void decode_slice(const F* codes, T* x, std::size_t n, std::size_t slice) {
  const std::size_t first = slice * N;
  if (first < n) store(x + first, cuda::decode<T>(load<N>(codes + first, n - first)), n - first);
}

// -- Scaled values ---------------------------------------------------------------------------------------------------

// The float that x is encoded as: x / descale or x * multiplier, rounded once, whatever -use_fast_math makes of `/`.
// (On the host a quotient below 2^-126 may be a unit off, where every code is 0.)
template <class T>
OCTET_INLINE float scaled(T x, const group_scale& s) {
  const float wide = octet::detail::to_source(x);
#if defined(__CUDA_ARCH__)
  return s.divides ? ptx::divide(wide, s.stored.value()) : ptx::multiply(wide, s.multiplier.value());
#else
  return s.divides ? exact::quotient(wide, s.stored.value()) : exact::product(wide, s.multiplier.value());
#endif
}
template <class F, class T, int N>
OCTET_INLINE pack<F, N> quantize(const pack<T, N>& x, const group_scale& s) {
  pack<float, N> y;
  for (int i = 0; i < N; ++i) y.value[i] = scaled(x.value[i], s);
  return cuda::encode<F>(y);
}
template <int N, class F, class T>
OCTET_INLINE void quantize_slice(const T* x, F* codes, std::size_t n, std::size_t slice, const group_scale& s) {
  const std::size_t first = slice * N;
  if (first < n) store(codes + first, detail::quantize<F>(load<N>(x + first, n - first), s), n - first);
}

// The bits of the largest finite magnitude of a pack, as a float's: magnitudes are in the order of their bits.
template <class T, int N>
OCTET_INLINE std::uint32_t finite_amax_bits(const pack<T, N>& x) {
  using S = float_traits<float>;
  std::uint32_t largest = 0;
  for (int i = 0; i < N; ++i) {
    const std::uint32_t magnitude = S::to_bits(octet::detail::to_source(x.value[i])) & (S::sign_mask - 1);
    if (magnitude < S::infinity && magnitude > largest) largest = magnitude;
  }
  return largest;
}

}  // namespace detail
}  // namespace cuda
}  // namespace v0
}  // namespace octet
