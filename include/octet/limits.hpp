// std::numeric_limits and std::hash of every format, computed from its template arguments.
// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <typeindex>  // std::hash

#include "fp8.hpp"

namespace octet {
inline namespace v0 {
namespace detail {

// The code of 2^exponent, normal or subnormal, which the format holds.
template <class F>
OCTET_INLINE constexpr F power_of_two_code(int exponent) {
  const int field = exponent - F::least_exponent + (F::is_signed ? 1 : 0);
  const bool normal = field > 0 || !F::is_signed;
  return F::from_bits(
      static_cast<std::uint8_t>(normal ? field << F::mantissa_bits : 1 << (F::mantissa_bits - 1 + field)));
}

// floor(n * log10(2)) for 0 <= n <= 300: 1233 / 4096 is that close to log10(2).
OCTET_INLINE constexpr int floor_log10_of_power_of_two(int n) { return n * 1233 / 4096; }

// The largest n for which 10^n is at most the format's largest value.
template <class F>
OCTET_INLINE constexpr int floor_log10_of_max() {
  constexpr int exponent = (F::max_code >> F::mantissa_bits) - F::bias;
  constexpr int significand = (F::max_code & ((1 << F::mantissa_bits) - 1)) | 1 << F::mantissa_bits;
  double largest = significand;
  for (int e = F::mantissa_bits; e < exponent; ++e) largest *= 2;
  for (int e = exponent; e < F::mantissa_bits; ++e) largest /= 2;
  int n = 0;
  for (double power = 10; power <= largest; power *= 10) ++n;
  return n;
}

}  // namespace detail
}  // namespace v0
}  // namespace octet

// Members as ISO C++ defines them: min() is the smallest normal value, lowest() the most negative one. infinity() and
// quiet_NaN() of a format that has none are code 00.
template <int E, int M, octet::encoding X, int Bias>
class std::numeric_limits<octet::fp8<E, M, X, Bias>> {
  using F = octet::fp8<E, M, X, Bias>;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = F::is_signed;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = F::has_infinity;
  static constexpr bool has_quiet_NaN = F::has_nan;
  static constexpr bool has_signaling_NaN = false;
  static constexpr float_denorm_style has_denorm = F::is_signed ? denorm_present : denorm_absent;
  static constexpr bool has_denorm_loss = false;
  static constexpr float_round_style round_style = F::is_signed ? round_to_nearest : round_toward_infinity;
  static constexpr bool is_iec559 = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr int radix = 2;
  static constexpr int digits = M + 1;
  static constexpr int digits10 = octet::detail::floor_log10_of_power_of_two(M);
  static constexpr int max_digits10 = octet::detail::floor_log10_of_power_of_two(digits) + 2;
  static constexpr int min_exponent = F::least_exponent + 1;
  static constexpr int max_exponent = (F::max_code >> M) - Bias + 1;
  static constexpr int min_exponent10 = -octet::detail::floor_log10_of_power_of_two(-F::least_exponent);
  static constexpr int max_exponent10 = octet::detail::floor_log10_of_max<F>();

  OCTET_INLINE static constexpr F(min)() noexcept { return octet::detail::power_of_two_code<F>(F::least_exponent); }
  OCTET_INLINE static constexpr F(max)() noexcept { return F::from_bits(F::max_code); }
  OCTET_INLINE static constexpr F lowest() noexcept {
    return F::is_signed ? F::from_bits(F::max_code | F::sign_mask) : F::from_bits(0);
  }
  OCTET_INLINE static constexpr F denorm_min() noexcept { return F::is_signed ? F::from_bits(1) : (min)(); }
  OCTET_INLINE static constexpr F epsilon() noexcept { return octet::detail::power_of_two_code<F>(-M); }
  OCTET_INLINE static constexpr F round_error() noexcept { return octet::detail::power_of_two_code<F>(-1); }
  OCTET_INLINE static constexpr F infinity() noexcept { return F::from_bits(has_infinity ? F::infinity_code : 0); }
  OCTET_INLINE static constexpr F quiet_NaN() noexcept { return F::from_bits(has_quiet_NaN ? F::nan_code : 0); }
  OCTET_INLINE static constexpr F signaling_NaN() noexcept { return F::from_bits(0); }
};

// Equal values have equal hashes: both zeros are one value.
template <int E, int M, octet::encoding X, int Bias>
struct std::hash<octet::fp8<E, M, X, Bias>> {
  OCTET_INLINE std::size_t operator()(octet::fp8<E, M, X, Bias> x) const noexcept {
    return x.magnitude() == 0 && x.has_negative_zero ? 0u : x.bits();
  }
};
