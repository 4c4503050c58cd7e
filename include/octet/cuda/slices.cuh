// What one thread of a kernel does, as host code too: so many values from memory, their codes, and back.
// SPDX-License-Identifier: MIT
#pragma once

#include <math.h>

#include "../scale.hpp"
#include "convert.cuh"

namespace octet {
inline namespace v0 {
namespace cuda {
namespace detail {

#if defined(__CUDA_ARCH__)
// How a pack goes to and from memory: in words of up to 16 bytes, if it has 4 or more.
template <std::size_t Size>
struct access {
  using word = std::conditional_t<Size % 16 == 0, uint4, std::conditional_t<Size == 8, uint2, unsigned>>;
  static constexpr bool is_wide = Size % sizeof(word) == 0;
};
#endif

// N values from memory and to it; of the last pack only those that are there. `p` is a multiple of the pack's alignment.
// there: how many, 1 or more.
template <int N, class T>
OCTET_INLINE pack<T, N> load(const T* p, std::size_t there) {
  pack<T, N> values{};
#if defined(__CUDA_ARCH__)
  using word = typename access<sizeof values>::word;
  if constexpr (access<sizeof values>::is_wide)
    if (there >= N) {
      for (unsigned i = 0; i < sizeof values / sizeof(word); ++i) {
        const word some = reinterpret_cast<const word*>(p)[i];
        memcpy(reinterpret_cast<char*>(&values) + sizeof some * i, &some, sizeof some);
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
  using word = typename access<sizeof values>::word;
  if constexpr (access<sizeof values>::is_wide)
    if (there >= N) {
      for (unsigned i = 0; i < sizeof values / sizeof(word); ++i) {
        word some;
        memcpy(&some, reinterpret_cast<const char*>(&values) + sizeof some * i, sizeof some);
        __stwb(reinterpret_cast<word*>(p) + i, some);  // as one access: it is no memory the compiler may split
      }
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

// The float of a value; NaN stays one.
template <class T>
OCTET_INLINE float wide(T x) {
#if defined(__CUDA_ARCH__)
  return octet::detail::widen_by_instruction(x);
#else
  return octet::detail::to_source(x);
#endif
}
struct larger {
  OCTET_INLINE std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a > b ? a : b; }
};
// The 16-bit floats that instructions take two at a time.
template <class T>
inline constexpr bool come_in_pairs = octet::detail::is_half<T> || octet::detail::is_bfloat16<T>;

OCTET_INLINE std::uint32_t magnitude_bits(float x) {
  return float_traits<float>::to_bits(x) & (float_traits<float>::sign_mask - 1);
}

// x / d by the reciprocal r of d, itself rounded to nearest: a quotient, its error, and the corrected quotient, three
// instructions where a division has more than twenty. For |x / d| below 2^20 and d from 2^-64 to 2^64 it has the code of
// the nearest float to x / d, for formats whose ties lie between 2^-18 and 2^19:
//   - Below 2^-20 everything is 0, with the sign of x: of -0 the quotient is -0, the error 0, and -0 - 0 is -0.
//   - Above, nothing underflows: the error is a multiple of 2^-43 * 2^-87. So the significands alone decide whether the
//     corrected quotient is the nearest float. It is within one unit of it, so a code could differ only beside a tie, and
//     a tie of 4 mantissa bits or fewer has 6 significant bits: tests/exhaustive/quotient.cpp tries all 2^23 divisors, all
//     32 ties and every x within 3 units of their product, and there it is the nearest float.
OCTET_INLINE float quotient_by_reciprocal(float x, float d, float r) {
#if defined(__CUDA_ARCH__)
  const float q = ptx::multiply(x, r);
  return ptx::subtract_product(q, ptx::multiply_subtract(q, d, x), r);
#else
  using S = float_traits<float>;
  const float q = x * r, error = ::fmaf(q, d, -x);
  // (As bits: g++ takes -(q * d - x) for x - q * d, whose zero has another sign.)
  return ::fmaf(S::from_bits(S::to_bits(error) ^ S::sign_mask), r, q);
#endif
}
template <class F>
inline constexpr bool has_ordinary_ties = F::mantissa_bits <= 4 && F::least_exponent - F::mantissa_bits >= -17 &&
                                          (F::max_code >> F::mantissa_bits) - F::bias <= 18;

// What stands between values and their codes: x / descale or x * multiplier, rounded once, whatever -use_fast_math makes of
// `/`. (On the host a quotient below 2^-126 may be a unit off, where every code is 0.)
OCTET_INLINE float scaled(float x, const group_scale& s) {
#if defined(__CUDA_ARCH__)
  if (s.divides) return ptx::divide(x, s.stored.value());
#else
  if (s.divides) return exact::quotient(x, s.stored.value());
#endif
  return exact::product(x, s.multiplier.value());
}

// The magnitude up to which the reciprocal stands in for the division, as bits; 0 where it never does. (Larger values
// and what is not finite are divided: of an infinite quotient the correction would be NaN.)
template <class F>
OCTET_INLINE std::uint32_t reciprocal_limit(const group_scale& s) {
  constexpr std::uint32_t least = 0x1F800000, most = 0x5F800000, binade = 0x00800000;  // 2^-64 and 2^64
  const std::uint32_t d = bit_cast<std::uint32_t>(s.stored.value());
  return has_ordinary_ties<F> && s.divides && d - least <= most - least ? d + 19 * binade : 0;
}

// The codes of N values that share a scale. largest: bits of a magnitude that none of them exceeds, as largest_bits gives it.
template <class F, class T, int N>
OCTET_INLINE pack<F, N> quantize(const pack<T, N>& x, const group_scale& s, std::uint32_t largest) {
  pack<float, N> y;
  if (largest < reciprocal_limit<F>(s)) {
    for (int i = 0; i < N; ++i)
      y.value[i] = quotient_by_reciprocal(wide(x.value[i]), s.stored.value(), s.multiplier.value());
  } else {
    for (int i = 0; i < N; ++i) y.value[i] = scaled(wide(x.value[i]), s);
  }
  return cuda::encode<F>(y);
}
template <class F>
OCTET_INLINE F quantize_one(float x, const group_scale& s) {
  return detail::quantize<F>(pack<float, 1>{{x}}, s, magnitude_bits(x)).value[0];
}

#if OCTET_HAS_PAIR_INSTRUCTIONS
// a * b toward zero, with the last bit set if something was cut off: 24 bits that round to fewer as the product does. For
// products of finite numbers that are 0 or at least 2^-100: what is cut off is then itself a float. Beyond the range of
// float that is the largest float, and rounds to infinity as the product does; NaN stays one.
__device__ __forceinline__ float product_to_odd(float a, float b) {
  const float cut = ptx::multiply_toward_zero(a, b), rest = ptx::multiply_subtract(a, b, cut);
  return bit_cast<float>(bit_cast<std::uint32_t>(cut) | (bit_cast<std::uint32_t>(rest) << 1 != 0 ? 1u : 0u));
}
#endif

// The values of N codes that share a descale: code * descale, rounded once to T, to nearest even.
template <class T, class F, int N>
OCTET_INLINE pack<T, N> dequantize(const pack<F, N>& codes, float d) {
  const pack<float, N> values = cuda::decode<float>(codes);
  pack<T, N> x;
#if OCTET_HAS_PAIR_INSTRUCTIONS
  if constexpr (come_in_pairs<T> && N % 2 == 0 && has_ordinary_ties<F> && !F::has_infinity) {
    if (bit_cast<std::uint32_t>(d) - 0x26800000u < float_traits<float>::infinity - 0x26800000u) {  // from 2^-50 on
      for (int i = 0; i < N; i += 2) {
        const float low = product_to_odd(values.value[i], d), high = product_to_odd(values.value[i + 1], d);
        const std::uint32_t pair =
            octet::detail::is_half<T> ? ptx::narrow_to_halves(low, high) : ptx::narrow_to_bfloat16s(low, high);
        memcpy(static_cast<void*>(x.value + i), &pair, sizeof pair);
      }
      return x;
    }
  }
#endif
  for (int i = 0; i < N; ++i) x.value[i] = exact::product<T>(values.value[i], d);
  return x;
}

// Magnitudes are in the order of their bits. The bits of the largest of a pack, as a float's, whatever is among them.
template <class T, int N>
OCTET_INLINE std::uint32_t largest_bits(const pack<T, N>& x) {
#if OCTET_HAS_PAIR_INSTRUCTIONS
  if constexpr (come_in_pairs<T> && N % 2 == 0) {
    std::uint32_t largest = 0;
    for (int i = 0; i < N; i += 2) {
      std::uint32_t pair;
      memcpy(&pair, x.value + i, sizeof pair);
      pair &= 0x7FFF7FFF;
      largest = octet::detail::is_half<T> ? ptx::larger_halves(largest, pair) : ptx::larger_bfloat16s(largest, pair);
    }
    const auto low = static_cast<std::uint16_t>(largest), high = static_cast<std::uint16_t>(largest >> 16);
    return magnitude_bits(wide(float_traits<T>::from_bits(low > high ? low : high)));
  }
#endif
  std::uint32_t largest = 0;
  for (int i = 0; i < N; ++i) {
    const std::uint32_t magnitude = magnitude_bits(wide(x.value[i]));
    largest = larger{}(largest, magnitude);
  }
  return largest;
}

// The bits of a pack's amax, its largest_bits given: of the finite values, or NaN if there is one, else infinity.
template <class T, int N>
OCTET_INLINE std::uint32_t amax_bits(const pack<T, N>& x, std::uint32_t largest, bool of_finite) {
  constexpr std::uint32_t infinity = float_traits<float>::infinity;
  if (largest < infinity) return largest;
  if (!of_finite) return largest > infinity ? float_traits<float>::sign_mask - 1 : infinity;
  largest = 0;
  for (int i = 0; i < N; ++i) {
    const std::uint32_t magnitude = magnitude_bits(wide(x.value[i]));
    if (magnitude < infinity && magnitude > largest) largest = magnitude;
  }
  return largest;
}
template <class T, int N>
OCTET_INLINE std::uint32_t amax_bits(const pack<T, N>& x, bool of_finite) {
  return amax_bits(x, largest_bits(x), of_finite);
}

}  // namespace detail
}  // namespace cuda
}  // namespace v0
}  // namespace octet
