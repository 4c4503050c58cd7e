// Float arithmetic on bits: what no compiler flag and no control register changes.
// SPDX-License-Identifier: MIT
#pragma once

#include "fp8.hpp"
#include "ptx.hpp"

namespace octet {
inline namespace v0 {
namespace exact {

template <class T>
using bits_of = typename float_traits<T>::bits_type;

// -- Widening -------------------------------------------------------------------------------------------------------

// whole * unit for a power of two: exact, and either 0 or normal wherever the library calls it, so neither a
// flush-to-zero nor a rounding mode touches it. Device code says so by an instruction that no flag changes.
template <class Float>
OCTET_INLINE constexpr Float times(std::int32_t whole, Float unit) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<Float, float>)
    if (!__builtin_is_constant_evaluated()) return ptx::multiply(static_cast<float>(whole), unit);
#endif
  return static_cast<Float>(whole) * unit;
}

// The bits of x in a wider type; every value is kept, NaN keeps its sign and payload. A subnormal of a narrow exponent
// range is an integer times a power of two; both are normal numbers of the wide type and so is their product.
template <class Wide, class Narrow>
OCTET_INLINE constexpr bits_of<Wide> widen_bits(bits_of<Narrow> narrow) {
  using W = float_traits<Wide>;
  using N = float_traits<Narrow>;
  using U = bits_of<Wide>;
  constexpr int shift = W::mantissa_bits - N::mantissa_bits;
  if constexpr (W::exponent_bits == N::exponent_bits) {
    return static_cast<U>(narrow) << shift;
  } else {
    constexpr U rebias = static_cast<U>(W::bias - N::bias) << W::mantissa_bits;
    constexpr U least_normal = U{1} << N::mantissa_bits;
    constexpr U unit = static_cast<U>(1 - N::bias - N::mantissa_bits + W::bias) << W::mantissa_bits;
    const U sign = static_cast<U>(narrow & N::sign_mask) << (8 * (sizeof(Wide) - sizeof(Narrow)));
    const U a = narrow & static_cast<U>(N::sign_mask - 1);
    const U special = (a << shift) | W::infinity;
    const U subnormal = W::to_bits(times(static_cast<std::int32_t>(a), W::from_bits(unit)));
    const U finite = a < least_normal ? subnormal : (a << shift) + rebias;
    return sign | (a < N::infinity ? finite : special);
  }
}

OCTET_INLINE constexpr double widen(float x) {
  return bit_cast<double>(widen_bits<double, float>(bit_cast<std::uint32_t>(x)));
}
OCTET_INLINE constexpr double widen(double x) { return x; }

// -- Rounding -------------------------------------------------------------------------------------------------------

// What is added to a significand before its low `shift` bits (1 or more) are cut off: the whole of a rounding mode.
struct by_mode {
  rounding mode;
  bool negative;  // of the value; the significand is its magnitude
  template <class U>
  OCTET_INLINE constexpr U operator()(U significand, int shift) const {
    const U below = (U{1} << shift) - 1, half = U{1} << (shift - 1);
    switch (mode) {
      case rounding::nearest_away:
        return half;
      case rounding::toward_zero:
        return 0;
      case rounding::upward:
        return negative ? 0 : below;
      case rounding::downward:
        return negative ? below : 0;
      case rounding::nearest_even:
        break;
    }
    return half - 1 + ((significand >> shift) & 1);
  }
};

// Stochastic rounding: floor(significand / 2^shift + random / 2^32), both terms over 2^shift. The significand is a
// double's: 52 mantissa bits of which at most 6 stay, so 46 <= shift <= 62. The sum carries at a multiple of 2^14 or
// more, so a lowest bit that stands for all bits below it (round_magnitude) decides nothing.
struct by_chance {
  std::uint32_t random;
  OCTET_INLINE constexpr std::uint64_t operator()(std::uint64_t, int shift) const {
    return std::uint64_t{random} << (shift - 32);
  }
};

// The magnitude with the bits `a` (of the type Source, not NaN) on the grid of a format with M mantissa bits and the
// given bias: its code, as if the format's exponent had no upper end; compare with the largest code to see an overflow.
//
// In every binade a format counts in units of its spacing, 2^(exponent - M), and in the subnormal range it goes on
// counting in the spacing of the least normal exponent. With r = |x| / spacing, rounded to an integer,
//     code = (exponent - least normal exponent) * 2^M + r
// for subnormal (r < 2^M) and normal (2^M <= r < 2^(M+1)) alike, and a carry into the next binade (r = 2^(M+1)) is
// right too.
template <class Source, int M, int Bias, class Round>
OCTET_INLINE constexpr bits_of<Source> round_magnitude(bits_of<Source> a, Round round) {
  using S = float_traits<Source>;
  using U = bits_of<Source>;
  constexpr int least = S::bias + 1 - Bias;  // the source's exponent field of the format's least normal value
  constexpr int widest = 8 * sizeof(U) - 2;  // shift; a significand and what rounding adds to it still fit
  static_assert(least >= 1, "the source reaches below the format's least normal value");
  // 1. Exponent field and significand, the implicit bit included; field 0 has the exponent of field 1 and no implicit
  // bit.
  const U field = a >> S::mantissa_bits;
  const bool normal = field != 0;
  U significand = (a & ((U{1} << S::mantissa_bits) - 1)) | (static_cast<U>(normal) << S::mantissa_bits);
  const int exponent = static_cast<int>(field) + !normal;
  // 2. The exponent whose spacing rules: that of x, but no less than the format's least.
  const int ruling = exponent < least ? least : exponent;
  // 3. How far the significand lies below that spacing. Of bits farther down than `widest` only whether one is set
  // matters.
  int shift = S::mantissa_bits - M + ruling - exponent;
  const int excess = shift <= widest ? 0 : shift - widest < 63 ? shift - widest : 63;
  shift = shift <= widest ? shift : widest;
  const std::uint64_t kept = std::uint64_t{significand} >> excess;
  significand = static_cast<U>(kept | (kept << excess != significand));
  // 4. Round to an integer and add the binades below.
  const U r = static_cast<U>(significand + round(significand, shift)) >> shift;
  return (static_cast<U>(ruling - least) << M) + r;
}

// The bits of x rounded to a narrower IEEE type: nearest even, overflow to infinity, NaN to 7FFF... with its sign
// dropped.
template <class Narrow>
OCTET_INLINE constexpr bits_of<Narrow> narrow_bits(std::uint64_t bits) {
  using N = float_traits<Narrow>;
  using D = float_traits<double>;
  const std::uint64_t a = bits & (D::sign_mask - 1);
  const std::uint64_t rounded =
      round_magnitude<double, N::mantissa_bits, N::bias>(a, by_mode{rounding::nearest_even, false});
  const std::uint64_t sign = bits >> 63 << (8 * sizeof(Narrow) - 1);
  const std::uint64_t number = sign | (rounded < N::infinity ? rounded : N::infinity);
  return static_cast<bits_of<Narrow>>(a > D::infinity ? N::sign_mask - 1 : number);
}

template <class Narrow>
OCTET_INLINE constexpr Narrow narrow(double x) {
  return float_traits<Narrow>::from_bits(narrow_bits<Narrow>(bit_cast<std::uint64_t>(x)));
}

// -- Powers of two ---------------------------------------------------------------------------------------------------

// 2^exponent as a double, |exponent| <= 1022.
OCTET_INLINE constexpr double power_of_two(int exponent) {
  using D = float_traits<double>;
  return bit_cast<double>(static_cast<std::uint64_t>(exponent + D::bias) << D::mantissa_bits);
}

// floor(log2(x)) of a positive normal double.
OCTET_INLINE constexpr int exponent_of(double x) {
  using D = float_traits<double>;
  return static_cast<int>(bit_cast<std::uint64_t>(x) >> D::mantissa_bits) - D::bias;
}

// -- Products and quotients -----------------------------------------------------------------------------------------

// a * b rounded once to the type T, to nearest even. The product of two 24-bit significands has 48 bits: exact in
// double.
template <class T = float>
OCTET_INLINE constexpr T product(float a, float b) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>)
    if (!__builtin_is_constant_evaluated()) return ptx::multiply(a, b);
#endif
  return narrow<T>(widen(a) * widen(b));
}

// a / b as a double that rounds to the same float as the exact quotient, if that is at least 2^-126, also after
// multiplication by a power of two.
// Let t be a float midpoint, 25 bits: a - t * b is a multiple of the last places' product, so a quotient of 24-bit
// numbers is never nearer to t than 2^-49 relatively, and never equal to it. a * (1 / b) in double is off by at most 2
// * 2^-52 in any rounding mode, so it lies on the same side of t.
OCTET_INLINE constexpr double wide_quotient(float a, float b) { return widen(a) * (1.0 / widen(b)); }

// a / b rounded to the nearest float; below 2^-126 within one unit of the last place. Device code divides by instruction,
// since double is slow on most GPUs; a quotient up to 2^-126 takes the host's road there too, so that both err alike.
OCTET_INLINE constexpr float quotient(float a, float b) {
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) {
    const float q = ptx::divide(a, b);
    const std::uint32_t magnitude = bit_cast<std::uint32_t>(q) & (float_traits<float>::sign_mask - 1);
    if (magnitude > bit_cast<std::uint32_t>(0x1p-126f) && magnitude <= float_traits<float>::infinity) return q;
  }
#endif
  return narrow<float>(wide_quotient(a, b));
}

}  // namespace exact
}  // namespace v0
}  // namespace octet
