// Many values: encode, decode and amax over a pointer and a count, or over two contiguous ranges of equal length.
// SPDX-License-Identifier: MIT
#pragma once

#include <utility>  // std::declval

#include "random.hpp"
#include "scale.hpp"
#include "simd/cache.hpp"
#include "simd/dispatch.hpp"

namespace octet {
inline namespace v0 {

// Every function here works in the calling thread, allocates nothing, and takes n = 0 (with any pointers) as nothing to
// do. A null pointer with n > 0, arrays that overlap, and ranges of different lengths are reported as errors.hpp says,
// before anything is written. T is float, double, octet::float16, octet::bfloat16 or another 16-bit type with
// float_traits.

namespace detail {

template <class In, class Out>
OCTET_HOST_INLINE void require_arrays(const char* where, const In* in, const Out* out, std::size_t n) {
  constexpr std::size_t widest = sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out);
  require(n <= static_cast<std::size_t>(-1) / 2 / widest, where, "a size of", n,
          "is more than memory holds; bytes each:", widest);
  require_pointer(where, "input", in, n, "values");
  require_pointer(where, "output", out, n, "values");
  require_apart(where, "output at a distance of", in, n * sizeof(In), out, n * sizeof(Out));
}

}  // namespace detail

// in: n values. out: n codes; may not overlap. Rounded in one rounding from T, to nearest even (e8m0: up) unless told
// otherwise; NaN and infinities as octet::encode of one value. Source: OCP OFP8 1.0 5.2.
template <class F, class T, std::enable_if_t<is_fp8_v<F> && is_float_v<T>, int> = 0>
OCTET_HOST_INLINE void encode(const T* in, F* out, std::size_t n, overflow o = overflow::saturate,
                              rounding r = F::default_rounding) {
  detail::require_arrays("encode", in, out, n);
  if (r == F::default_rounding)
    simd::converts<F, T>().encode(in, out, n, o, simd::streams(n * (sizeof(T) + 1)));
  else
    for (std::size_t i = 0; i < n; ++i) out[i] = octet::encode<F>(in[i], o, r);
}

// The same by stochastic rounding. Value number i takes word first_index + i of the Philox stream `seed`, so that a
// long array may be cut anywhere and shared among threads: the codes stay the same.
template <class F, class T, std::enable_if_t<is_fp8_v<F> && is_float_v<T>, int> = 0>
OCTET_HOST_INLINE void encode_stochastic(const T* in, F* out, std::size_t n, std::uint64_t seed,
                                         std::uint64_t first_index = 0, overflow o = overflow::saturate) {
  detail::require_arrays("encode_stochastic", in, out, n);
  std::uint64_t index = first_index;
  philox_block block = philox(seed, index / 4);
  for (std::size_t i = 0; i < n; ++i, ++index) {
    if (index % 4 == 0) block = philox(seed, index / 4);
    out[i] = octet::encode_stochastic<F>(in[i], block.words[index % 4], o);
  }
}

// in: n codes. out: n values; may not overlap. Exact (a 16-bit T rounds what it cannot hold of E8M0); NaN as
// octet::decode of one code. Source: OCP OFP8 1.0 5.1.
template <class F, class T, std::enable_if_t<is_fp8_v<F> && is_float_v<T>, int> = 0>
OCTET_HOST_INLINE void decode(const F* in, T* out, std::size_t n) {
  detail::require_arrays("decode", in, out, n);
  simd::converts<F, T>().decode(in, out, n, simd::streams(n * (sizeof(T) + 1)));
}

namespace detail {

template <class T>
using amax_type = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A magnitude by its bits: a number, infinity, or NaN without its payload.
template <class T>
OCTET_INLINE constexpr amax_type<T> magnitude_of(exact::bits_of<T> a) {
  using A = float_traits<amax_type<T>>;
  if (a > float_traits<T>::infinity) return A::from_bits(A::sign_mask - 1);
  return to_source(float_traits<T>::from_bits(a));
}

[[noreturn]] OCTET_COLD void reject(const char* where, std::size_t count) {
  fail(where, "the input has", count, "values that are NaN or infinite; allowed are", 0);
}

}  // namespace detail

// The largest magnitude of n values, 0 for none; NaN and infinity by the policy (by default NaN if there is a NaN, else
// infinity). float for float and the 16-bit types, double for double.
template <class T, std::enable_if_t<is_float_v<T>, int> = 0>
[[nodiscard]] OCTET_HOST_INLINE detail::amax_type<T> amax(const T* in, std::size_t n,
                                                          nonfinite policy = nonfinite::propagate) {
  using S = float_traits<T>;
  detail::require_pointer("amax", "input", in, n, "values");
  const auto largest = n == 0 ? typename S::bits_type{0} : simd::reduces<T>().amax(in, n, simd::streams(n * sizeof(T)));
  if (largest < S::infinity || policy == nonfinite::propagate) return detail::magnitude_of<T>(largest);
  std::size_t not_finite = 0;
  const auto finite = simd::reduces<T>().finite_amax(in, n, not_finite);
  if (policy == nonfinite::reject) detail::reject("amax", not_finite);
  return detail::magnitude_of<T>(finite);
}

// -- Contiguous ranges: std::vector, std::array, std::span, C arrays, anything with data() and size() ---------------

namespace detail {

// std::data and std::size, but inlined like everything else here.
template <class R>
OCTET_HOST_INLINE auto data_of(R& range) -> decltype(range.data()) {
  return range.data();
}
template <class T, std::size_t N>
OCTET_HOST_INLINE T* data_of(T (&array)[N]) {
  return array;
}
template <class R>
OCTET_HOST_INLINE auto size_of(const R& range) -> decltype(static_cast<std::size_t>(range.size())) {
  return static_cast<std::size_t>(range.size());
}
template <class T, std::size_t N>
OCTET_HOST_INLINE std::size_t size_of(const T (&)[N]) {
  return N;
}

template <class R>
using element_of = std::remove_cv_t<std::remove_pointer_t<decltype(data_of(std::declval<R&>()))>>;

template <class In, class Out>
OCTET_HOST_INLINE std::size_t common_size(const char* where, const In& in, const Out& out) {
  require(size_of(in) == size_of(out), where, "an input of", size_of(in), "values, an output of", size_of(out));
  return size_of(in);
}

}  // namespace detail

template <class In, class Out, class F = detail::element_of<Out>,
          std::enable_if_t<is_float_v<detail::element_of<const In>> && is_fp8_v<F>, int> = 0>
OCTET_HOST_INLINE void encode(const In& in, Out&& out, overflow o = overflow::saturate,
                              rounding r = F::default_rounding) {
  octet::encode(detail::data_of(in), detail::data_of(out), detail::common_size("encode", in, out), o, r);
}

template <class In, class Out,
          std::enable_if_t<is_float_v<detail::element_of<const In>> && is_fp8_v<detail::element_of<Out>>, int> = 0>
OCTET_HOST_INLINE void encode_stochastic(const In& in, Out&& out, std::uint64_t seed, std::uint64_t first_index = 0,
                                         overflow o = overflow::saturate) {
  octet::encode_stochastic(detail::data_of(in), detail::data_of(out), detail::common_size("encode_stochastic", in, out),
                           seed, first_index, o);
}

template <class In, class Out,
          std::enable_if_t<is_fp8_v<detail::element_of<const In>> && is_float_v<detail::element_of<Out>>, int> = 0>
OCTET_HOST_INLINE void decode(const In& in, Out&& out) {
  octet::decode(detail::data_of(in), detail::data_of(out), detail::common_size("decode", in, out));
}

template <class In, std::enable_if_t<is_float_v<detail::element_of<const In>>, int> = 0>
[[nodiscard]] OCTET_HOST_INLINE auto amax(const In& in, nonfinite policy = nonfinite::propagate) {
  return octet::amax(detail::data_of(in), detail::size_of(in), policy);
}

// -- Bytes ----------------------------------------------------------------------------------------------------------

// A byte buffer seen as codes: the same memory, whatever it was written as (fp8 may alias every type).
template <class F, std::enable_if_t<is_fp8_v<F>, int> = 0>
OCTET_HOST_INLINE F* as_codes(void* bytes) {
  return static_cast<F*>(bytes);
}
template <class F, std::enable_if_t<is_fp8_v<F>, int> = 0>
OCTET_HOST_INLINE const F* as_codes(const void* bytes) {
  return static_cast<const F*>(bytes);
}

}  // namespace v0
}  // namespace octet
