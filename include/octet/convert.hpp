// One value: encode and decode between fp8 and every number type; constant expressions, host and device.
// SPDX-License-Identifier: MIT
#pragma once

#include "exact.hpp"

namespace octet {
inline namespace v0 {

namespace detail {

// The layout of a float; 0 of a number without one (an integer, long double).
template <class T, class = void>
inline constexpr int exponent_bits_of = 0;
template <class T>
inline constexpr int exponent_bits_of<T, std::void_t<decltype(float_traits<T>::exponent_bits)>> =
    float_traits<T>::exponent_bits;
template <class T>
inline constexpr bool is_half = exponent_bits_of<T> == 5;
template <class T>
inline constexpr bool is_bfloat16 = sizeof(T) == 2 && exponent_bits_of<T> == 8;

// -- In hardware -----------------------------------------------------------------------------------------------------

// The formats that device code has instructions for, from float and the 16-bit floats and back. They do what encode does
// when it rounds by the format's default (E8M0 toward zero too) and saturates (a format without NaN always does), and
// what decode does. (PTX does not fix the sign of a NaN's code; cuda_fp8.h takes what the instruction gives, and so does
// this.)
template <class F>
inline constexpr bool has_instructions = false;
#if OCTET_HAS_FP8_INSTRUCTIONS
template <>
inline constexpr bool has_instructions<e4m3> = true;
template <>
inline constexpr bool has_instructions<e5m2> = true;
#endif
#if OCTET_HAS_FAMILY_INSTRUCTIONS
template <>
inline constexpr bool has_instructions<e8m0> = true;
template <>
inline constexpr bool has_instructions<e2m3> = true;
template <>
inline constexpr bool has_instructions<e3m2> = true;
template <>
inline constexpr bool has_instructions<e2m1> = true;
#endif
template <class F, class T>
inline constexpr bool has_instructions_from = has_instructions<F>&& is_float_v<T> && sizeof(T) <= sizeof(float);

// What an instruction gives for two codes: the bits of halves, which hold every value of a format but E8M0, or of
// bfloat16s, which hold its.
template <class F>
inline constexpr bool decodes_to_halves = F::special_codes != encoding::exponent;

#if OCTET_HAS_FP8_INSTRUCTIONS
// The values of two codes, that of the low byte in the low half.
template <class F>
__device__ __forceinline__ std::uint32_t decode_by_instruction(std::uint16_t codes) {
  if constexpr (decodes_to_halves<F>)
    return ptx::decode_to_halves<F::exponent_bits, F::mantissa_bits>(codes);
  else
    return ptx::decode_to_bfloat16s(codes);
}
// The bits of the float with one of these values.
template <class F>
__device__ __forceinline__ std::uint32_t widen_decoded(std::uint16_t value) {
  if constexpr (decodes_to_halves<F>)
    return bit_cast<std::uint32_t>(ptx::widen_half(value));
  else
    return std::uint32_t{value} << 16;
}
#endif

// -- To fp8 ---------------------------------------------------------------------------------------------------------

// A direction is a mode, or 32 random bits. Its rounding policy, and whether it stops an overflowing value at the
// largest one.
OCTET_INLINE constexpr exact::by_mode policy(rounding r, bool negative) { return {r, negative}; }
OCTET_INLINE constexpr exact::by_chance policy(exact::by_chance c, bool) { return c; }
OCTET_INLINE constexpr bool inward(rounding r, bool negative) {
  return r == rounding::toward_zero || r == (negative ? rounding::upward : rounding::downward);
}
OCTET_INLINE constexpr bool inward(exact::by_chance, bool) { return false; }

// E8M0 has no spacing within a binade: the code and the significand below it are one number, rounded at bit 52.
// Everything at or below 2^-127 is code 00.
template <class F, class Round>
OCTET_INLINE constexpr std::uint64_t round_exponent(std::uint64_t a, Round round) {
  using D = float_traits<double>;
  constexpr std::uint64_t least = static_cast<std::uint64_t>(D::bias - F::bias) << D::mantissa_bits;
  const std::uint64_t above = a < least ? 0 : a - least;
  return (above + round(above, D::mantissa_bits)) >> D::mantissa_bits;
}

// The code of a value given by its bits as a Source (float or double).
template <class F, class Source, class Direction>
OCTET_INLINE constexpr F encode_bits(exact::bits_of<Source> bits, overflow o, Direction direction) {
  using S = float_traits<Source>;
  const auto a = static_cast<exact::bits_of<Source>>(bits & (S::sign_mask - 1));
  const unsigned sign = a != bits ? F::sign_mask : 0u;
  // 1. NaN: without its sign from every type but double, which keeps the sign and, for E5M2, the top mantissa bits.
  if (a > S::infinity) {
    constexpr bool keeps_sign = std::is_same_v<Source, double> && F::has_nan && F::has_negative_zero;
    constexpr bool keeps_payload = keeps_sign && std::is_same_v<F, e5m2>;
    const unsigned nan =
        keeps_payload ? 0x7Eu | (static_cast<unsigned>(a >> (S::mantissa_bits - 2)) & 3u) : F::nan_code;
    return F::from_bits(static_cast<std::uint8_t>(keeps_sign ? sign | nan : nan));
  }
  // 2. The magnitude on the grid of the format. Random bits need the room of a 64-bit significand, E8M0 the range of
  // double.
  const auto round = policy(direction, sign != 0);
  std::uint64_t code = 0;
  if constexpr (F::special_codes == encoding::exponent)
    code = round_exponent<F>(exact::widen_bits<double, Source>(a), round);
  else if constexpr (std::is_same_v<Direction, exact::by_chance>)
    code = exact::round_magnitude<double, F::mantissa_bits, F::bias>(exact::widen_bits<double, Source>(a), round);
  else
    code = exact::round_magnitude<Source, F::mantissa_bits, F::bias>(a, round);
  // 3. Overflow. A mode that points inward stops a finite value at the largest one.
  if (code > F::max_code) {
    const bool largest = o == overflow::saturate || (a < S::infinity && inward(direction, sign != 0));
    code = largest ? F::max_code : F::has_infinity ? F::infinity_code : F::nan_code;
  }
  // 4. The sign, where a zero can carry one.
  if (F::has_negative_zero || code != 0) code |= sign;
  return F::from_bits(static_cast<std::uint8_t>(code));
}

// A double whose origin a compiler does not know: under the most aggressive flags (long double)(double)x is x to it.
OCTET_INLINE double opaque(double x) {
  const volatile double stored = x;
  return stored;
}

// A double that rounds like x in every mode: the bits x has and a double has not are or-ed into the last place ("round
// to odd"; right because every format keeps far fewer bits than that).
template <class LongDouble>
OCTET_INLINE constexpr double to_odd(LongDouble x) {
  const double nearby = __builtin_is_constant_evaluated() ? static_cast<double>(x) : opaque(static_cast<double>(x));
  if constexpr (std::numeric_limits<LongDouble>::digits > std::numeric_limits<double>::digits) {
    const std::uint64_t bits = bit_cast<std::uint64_t>(nearby);
    constexpr std::uint64_t infinity = float_traits<double>::infinity;
    const std::uint64_t a = bits & ~(std::uint64_t{1} << 63);
    if (a > infinity) return nearby;
    // Toward zero first: `nearby` lies beyond x if it was rounded away, and a finite x can round to infinity.
    const LongDouble back = static_cast<LongDouble>(nearby);
    if (back == x) return nearby;
    const bool beyond = bits >> 63 != 0 ? back < x : back > x;
    return bit_cast<double>((beyond ? bits - 1 : bits) | 1);
  } else {
    return nearby;
  }
}

template <class Integer>
OCTET_INLINE constexpr double to_odd_integer(Integer x) {
  using U = std::make_unsigned_t<Integer>;
  bool negative = false;
  if constexpr (std::is_signed_v<Integer>) negative = x < 0;
  U magnitude = static_cast<U>(negative ? U{0} - static_cast<U>(x) : static_cast<U>(x));
  double unit = negative ? -1.0 : 1.0;
  if constexpr (std::numeric_limits<U>::digits > std::numeric_limits<double>::digits) {
    for (; magnitude >> std::numeric_limits<double>::digits != 0; unit *= 2)
      magnitude = static_cast<U>((magnitude >> 1) | (magnitude & 1));
  }
  // By way of a signed integer (it is below 2^53): rounding downward, some conversions of an unsigned 0 give -0.
  return static_cast<double>(static_cast<std::int64_t>(magnitude)) * unit;
}

// A float stays a float, a 16-bit float becomes one (exactly), every other number becomes a double that rounds as it
// would.
template <class T>
OCTET_INLINE constexpr auto to_source(T x) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return x;
  else if constexpr (is_float_v<T>)
    return bit_cast<float>(exact::widen_bits<float, T>(float_traits<T>::to_bits(x)));
  else if constexpr (std::is_floating_point_v<T>)
    return to_odd(x);
  else
    return to_odd_integer(x);
}

#if defined(__CUDA_ARCH__)
// A 16-bit float or a float as a float. (Of a half's NaN only that it is one is kept.)
template <class T>
__device__ __forceinline__ float widen_by_instruction(T x) {
  if constexpr (is_half<T>)
    return ptx::widen_half(float_traits<T>::to_bits(x));
  else
    return to_source(x);
}
#endif
#if OCTET_HAS_FP8_INSTRUCTIONS
// Two 16-bit floats in one word, the first in the low half.
template <class T>
__device__ __forceinline__ std::uint32_t word_of(T first, T second) {
  return float_traits<T>::to_bits(first) | std::uint32_t{float_traits<T>::to_bits(second)} << 16;
}
__device__ __forceinline__ float without_sign(float x) {
  using S = float_traits<float>;
  return S::from_bits(S::to_bits(x) & (S::sign_mask - 1));
}

// The codes of two values, the first in the low byte. E8M0 has no sign, so its magnitudes are rounded.
template <class F, class T>
__device__ __forceinline__ std::uint16_t encode_by_instruction(T first, T second, rounding r = F::default_rounding) {
  constexpr int E = F::exponent_bits, M = F::mantissa_bits;
  if constexpr (F::special_codes == encoding::exponent) {
    const bool up = r == rounding::upward;
    if constexpr (is_bfloat16<T>) {
      const std::uint32_t magnitudes = word_of(first, second) & 0x7FFF7FFF;
      return up ? ptx::exponents_of_bfloat16s_up(magnitudes) : ptx::exponents_of_bfloat16s_toward_zero(magnitudes);
    } else {
      const float low = without_sign(widen_by_instruction(first)), high = without_sign(widen_by_instruction(second));
      return up ? ptx::exponents_of_floats_up(low, high) : ptx::exponents_of_floats_toward_zero(low, high);
    }
  } else if constexpr (is_half<T> && F::width == 8) {
    return ptx::encode_halves<E, M>(word_of(first, second));
  } else {
    return ptx::encode_floats<E, M>(widen_by_instruction(first), widen_by_instruction(second));
  }
}
#endif

// Whether encode_by_instruction does what this overflow rule and rounding say.
template <class F>
OCTET_INLINE constexpr bool is_by_instruction(overflow o, rounding r) {
  return (o == overflow::saturate || !F::has_nan) &&
         (r == F::default_rounding || (!F::is_signed && r == rounding::toward_zero));
}

template <class F, class T, class Direction>
OCTET_INLINE constexpr F encode_number(T x, overflow o, Direction direction) {
  const auto source = to_source(x);
  using Source = std::remove_const_t<decltype(source)>;
  return encode_bits<F, Source>(float_traits<Source>::to_bits(source), o, direction);
}

// -- From fp8 -------------------------------------------------------------------------------------------------------

// The float with the value of q, by bits; NaN is 7FFFFFFF, of E8M0 7FFF0000.
template <class F>
OCTET_INLINE constexpr std::uint32_t decode_bits(F q) {
  using S = float_traits<float>;
#if OCTET_HAS_FP8_INSTRUCTIONS
  if constexpr (has_instructions<F>)
    if (!__builtin_is_constant_evaluated())
      return widen_decoded<F>(static_cast<std::uint16_t>(decode_by_instruction<F>(q.bits())));
#endif
  const std::uint32_t code = q.magnitude();
  if constexpr (F::special_codes == encoding::exponent) {
    constexpr std::uint32_t least = 0x00400000;  // 2^-127, subnormal
    return isnan(q) ? 0x7FFF0000u : code == 0 ? least : code << S::mantissa_bits;
  } else {
    if (isnan(q)) return S::sign_mask - 1;
    const std::uint32_t sign = signbit(q) ? S::sign_mask : 0;
    if (isinf(q)) return sign | S::infinity;
    // A subnormal is an integer times the spacing of the least binade, both of them normal floats.
    constexpr std::uint32_t rebias = static_cast<std::uint32_t>(S::bias - F::bias) << S::mantissa_bits;
    constexpr std::uint32_t spacing = static_cast<std::uint32_t>(F::least_exponent - F::mantissa_bits + S::bias)
                                      << S::mantissa_bits;
    if (code < 1u << F::mantissa_bits)
      return sign | bit_cast<std::uint32_t>(exact::times(static_cast<std::int32_t>(code), bit_cast<float>(spacing)));
    return sign | ((code << (S::mantissa_bits - F::mantissa_bits)) + rebias);
  }
}

// The value that a float's bits have, as a T that is a float too: exact, but a 16-bit T rounds to nearest even what it
// cannot hold. `bits` are those of a code's value, so a type with the exponents of float holds it with the mantissa bits
// it has.
template <class T>
OCTET_INLINE constexpr T from_value_bits(std::uint32_t bits) {
  using S = float_traits<float>;
  if constexpr (exponent_bits_of<T> == S::exponent_bits)
    return float_traits<T>::from_bits(
        static_cast<typename float_traits<T>::bits_type>(bits >> (S::mantissa_bits - float_traits<T>::mantissa_bits)));
  else if constexpr (std::is_floating_point_v<T> && sizeof(T) >= sizeof(double))
    return static_cast<T>(bit_cast<double>(exact::widen_bits<double, float>(bits)));
  else
    return float_traits<T>::from_bits(exact::narrow_bits<T>(exact::widen_bits<double, float>(bits)));
}

// The bits of the least positive float that overflows when rounded to nearest even. Half a unit above the largest value
// lies a tie: an odd largest code gives it to the next code, which does not exist; an even one keeps it.
template <class F>
OCTET_INLINE constexpr std::uint32_t overflow_bits() {
  static_assert(F::is_signed, "E8M0 is not rounded to nearest even");
  using S = float_traits<float>;
  constexpr std::uint32_t largest = decode_bits(F::from_bits(F::max_code));
  constexpr std::uint32_t half_unit = 1u << (S::mantissa_bits - F::mantissa_bits - 1);
  return largest + half_unit + (F::max_code % 2 == 0 ? 1 : 0);
}

// Truncated toward zero, saturating at the limits of the type; NaN gives 0.
template <class Integer, class F>
OCTET_INLINE constexpr Integer decode_integer(F q) {
  using D = float_traits<double>;
  const std::uint64_t bits = exact::widen_bits<double, float>(decode_bits(q));
  const std::uint64_t a = bits & (D::sign_mask - 1);
  const bool negative = a != bits;
  if (a > D::infinity) return 0;
  const int exponent = static_cast<int>(a >> D::mantissa_bits) - D::bias;
  if (exponent < 0) return 0;
  constexpr int digits = std::numeric_limits<Integer>::digits;
  constexpr Integer half = static_cast<Integer>(static_cast<std::make_unsigned_t<Integer>>(1) << (digits - 1));
  constexpr Integer most = static_cast<Integer>(half - 1 + half),
                    least = static_cast<Integer>(std::is_signed_v<Integer> ? -most - 1 : 0);
  if (exponent >= digits) return negative ? least : most;
  if (negative && std::is_unsigned_v<Integer>) return 0;
  const std::uint64_t significand = (a & ((std::uint64_t{1} << D::mantissa_bits) - 1)) | std::uint64_t{1}
                                                                                             << D::mantissa_bits;
  const Integer magnitude =
      exponent <= D::mantissa_bits
          ? static_cast<Integer>(significand >> (D::mantissa_bits - exponent))
          : static_cast<Integer>(static_cast<Integer>(significand) << (exponent - D::mantissa_bits));
  return negative ? static_cast<Integer>(-magnitude) : magnitude;
}

}  // namespace detail

// The code of one value.
//   x         any number (float, double, long double, a 16-bit float, an integer, but not bool); rounded once
//   o         what a value beyond the largest finite one becomes; infinities follow the same rule
//   r         to which neighbour; e8m0 rounds up unless told otherwise
// NaN becomes the format's NaN: 7F without its sign, but from double (and long double) sign | 7F, and for E5M2 sign |
// 7E | the top two mantissa bits, as cuda_fp8.h does; 80 for fnuz and P3109; the largest value where the format has no
// NaN. -0 keeps its sign where the format has a -0. Never fails. Source: OCP OFP8 1.0 5.2, OCP MX 1.0 5.3, IEEE
// 754-2019 4.3, 7.4.
template <class F, class T, std::enable_if_t<is_fp8_v<F> && is_number_v<T>, int> = 0>
OCTET_INLINE constexpr F encode(T x, overflow o = overflow::saturate, rounding r = F::default_rounding) {
#if OCTET_HAS_FP8_INSTRUCTIONS
  if constexpr (detail::has_instructions_from<F, T>)
    if (!__builtin_is_constant_evaluated() && detail::is_by_instruction<F>(o, r))
      return F::from_bits(
          static_cast<std::uint8_t>(detail::encode_by_instruction<F>(x, float_traits<T>::from_bits(0), r)));
#endif
  return detail::encode_number<F>(x, o, r);
}

// The code of one value by stochastic rounding: of its two neighbours the upper in magnitude with the probability of
// the distance to the lower, floor(|x| / spacing + random_bits / 2^32); `random_bits` is 32 uniform bits, the bias at
// most 2^-32 of the spacing. Overflow and NaN as in encode.
template <class F, class T, std::enable_if_t<is_fp8_v<F> && is_number_v<T>, int> = 0>
OCTET_INLINE constexpr F encode_stochastic(T x, std::uint32_t random_bits, overflow o = overflow::saturate) {
  return detail::encode_number<F>(x, o, exact::by_chance{random_bits});
}

// The value of one code.
//   T         a float type: exact, but a 16-bit T rounds to nearest even what it cannot hold of E8M0; NaN is
//             7FFFFFFF as float, 7FFFFFFFE0000000 as double, 7FFF as 16 bits, and from E8M0 7FFF0000 as float: the
//             sign of NaN is lost, as in cuda_fp8.h
//             or an integer type: truncated toward zero, saturating at the limits of T, NaN gives 0
// Never fails. Source: OCP OFP8 1.0 5.1, OCP MX 1.0 5.3.
template <class T = float, class F, std::enable_if_t<is_fp8_v<F> && is_number_v<T>, int> = 0>
OCTET_INLINE constexpr T decode(F q) {
  if constexpr (std::is_integral_v<T>) {
    return detail::decode_integer<T>(q);
  } else {
#if OCTET_HAS_FP8_INSTRUCTIONS
    if constexpr (detail::has_instructions<F> && detail::decodes_to_halves<F> && detail::is_half<T>)
      if (!__builtin_is_constant_evaluated())
        return float_traits<T>::from_bits(static_cast<std::uint16_t>(detail::decode_by_instruction<F>(q.bits())));
#endif
    return detail::from_value_bits<T>(detail::decode_bits(q));
  }
}

// -- The conversions that fp8.hpp and float_traits.hpp declare ------------------------------------------------------

template <int E, int M, encoding X, int Bias>
template <class T, std::enable_if_t<is_number_v<T>, int>>
OCTET_INLINE constexpr fp8<E, M, X, Bias>::fp8(T x) : code_(encode<fp8>(x).bits()) {}

template <int E, int M, encoding X, int Bias>
template <int E2, int M2, encoding X2, int Bias2>
OCTET_INLINE constexpr fp8<E, M, X, Bias>::fp8(fp8<E2, M2, X2, Bias2> x) : code_(encode<fp8>(decode(x)).bits()) {}

template <int E, int M, encoding X, int Bias>
template <class T, std::enable_if_t<is_number_v<T>, int>>
OCTET_INLINE constexpr fp8<E, M, X, Bias>::operator T() const {
  return decode<T>(*this);
}

template <int E, int M>
template <class T, std::enable_if_t<is_number_v<T>, int>>
OCTET_INLINE constexpr float16_of<E, M>::float16_of(T x)
    : bits_(exact::narrow<float16_of>(exact::widen(detail::to_source(x))).bits()) {}

template <int E, int M>
template <class T, std::enable_if_t<std::is_floating_point_v<T>, int>>
OCTET_INLINE constexpr float16_of<E, M>::operator T() const {
  if constexpr (sizeof(T) > sizeof(float))
    return static_cast<T>(exact::widen(detail::to_source(*this)));
  else
    return detail::to_source(*this);
}

}  // namespace v0
}  // namespace octet
