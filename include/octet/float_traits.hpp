// Which types are floats: the layout of each, and two types for buffers of raw 16-bit floats.
// SPDX-License-Identifier: MIT
#pragma once

#include "config.hpp"

namespace octet {
inline namespace v0 {

// An IEEE 754 binary layout: sign, E exponent bits, M mantissa bits. A 16-bit type of any library joins with one line,
//   template <> struct octet::float_traits<__half> : octet::ieee_layout<__half, 5, 10> {};
template <class T, int E, int M>
struct ieee_layout {
  using bits_type =
      std::conditional_t<E + M == 15, std::uint16_t, std::conditional_t<E + M == 31, std::uint32_t, std::uint64_t>>;
  static_assert(std::is_trivially_copyable_v<T>, "a float type is its bits: trivially copyable");
  static_assert(sizeof(T) == sizeof(bits_type), "E and M are not the layout of this type");
  static constexpr int exponent_bits = E;
  static constexpr int mantissa_bits = M;
  static constexpr int bias = (1 << (E - 1)) - 1;
  static constexpr bits_type sign_mask = static_cast<bits_type>(bits_type{1} << (E + M));
  static constexpr bits_type infinity = static_cast<bits_type>(((bits_type{1} << E) - 1) << M);

  OCTET_INLINE static constexpr bits_type to_bits(T x) { return bit_cast<bits_type>(x); }
  OCTET_INLINE static constexpr T from_bits(bits_type bits) { return bit_cast<T>(bits); }
};

// Left empty for a type that is no float.
template <class T>
struct float_traits {};

// Has a layout: what is encoded from and decoded to in bulk.
template <class T, class = void>
inline constexpr bool is_float_v = false;
template <class T>
inline constexpr bool is_float_v<T, std::void_t<decltype(float_traits<T>::mantissa_bits)>> = true;

// Converts from and to fp8 one value at a time: every float, long double and every integer, but not bool.
template <class T>
inline constexpr bool is_number_v = is_float_v<T> || std::is_same_v<T, long double> ||
                                    (std::is_integral_v<T> && !std::is_same_v<T, bool>);

// A 16-bit float as it lies in memory, for buffers of raw halves and bfloat16s. One 16-bit word, trivial. Converts
// explicitly from every number, rounding once to nearest even, overflow to infinity, NaN to 7FFF (IEEE 754-2019 5.4.2),
// and to float, double and long double, exactly. The bodies are in convert.hpp.
template <int E, int M>
class OCTET_MAY_ALIAS float16_of {
  std::uint16_t bits_;

 public:
  float16_of() = default;
  template <class T, std::enable_if_t<is_number_v<T>, int> = 0>
  OCTET_INLINE explicit constexpr float16_of(T x);
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
  OCTET_INLINE explicit constexpr operator T() const;
  OCTET_INLINE static constexpr float16_of from_bits(std::uint16_t bits) { return bit_cast<float16_of>(bits); }
  OCTET_INLINE constexpr std::uint16_t bits() const { return bits_; }
};

using float16 = float16_of<5, 10>;  // IEEE 754 binary16, "half"
using bfloat16 = float16_of<8, 7>;  // the upper half of a float

template <>
struct float_traits<float> : ieee_layout<float, 8, 23> {};
template <>
struct float_traits<double> : ieee_layout<double, 11, 52> {};
template <int E, int M>
struct float_traits<float16_of<E, M>> : ieee_layout<float16_of<E, M>, E, M> {};
#if OCTET_HAS_FLOAT16
template <>
struct float_traits<_Float16> : ieee_layout<_Float16, 5, 10> {};
#endif
#if OCTET_HAS_BFLOAT16
template <>
struct float_traits<decltype(0.0bf16)> : ieee_layout<decltype(0.0bf16), 8, 7> {};
#endif

}  // namespace v0
}  // namespace octet
