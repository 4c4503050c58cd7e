// The byte: fp8<E, M, encoding, bias>, one class over all floating-point formats of at most 8 bits.
// SPDX-License-Identifier: MIT
#pragma once

#include "float_traits.hpp"

namespace octet {
inline namespace v0 {

// What the special codes of a format are.
enum class encoding : unsigned char {
  ieee,      // infinity and NaN in the last binade, as in IEEE 754
  fn,        // no infinity; the one code of all ones (with either sign) is NaN (OCP OFP8 1.0, E4M3)
  fnuz,      // no infinity, no -0; the code of -0 is NaN
  p3109,     // no -0, its code is NaN; the two codes of all ones are the infinities (IEEE P3109 draft 3.2)
  finite,    // every code is a number (OCP MX 1.0, FP6 and FP4)
  exponent,  // unsigned power of two, code FF is NaN (OCP MX 1.0, E8M0)
};

// What becomes of a value beyond the largest finite one.
enum class overflow : unsigned char {
  saturate,   // the largest finite value, infinities too
  nonfinite,  // infinity, or NaN where the format has none; saturates where it has neither
};

// To which neighbour a value between two codes goes (IEEE 754-2019 4.3).
enum class rounding : unsigned char { nearest_even, nearest_away, toward_zero, upward, downward };

// OCP's and IEEE's choice for a format of this shape: powers of two without a mantissa, the elements of MX below 8
// bits, OCP E4M3 without infinity, IEEE otherwise.
OCTET_INLINE constexpr encoding default_encoding(int e, int m) {
  return m == 0               ? encoding::exponent
         : e + m < 7          ? encoding::finite
         : (e == 4 && m == 3) ? encoding::fn
                              : encoding::ieee;
}

// The exponent field of 1.0: half of the field's range, rounded down, or one more where the code of -0 is spent on NaN.
OCTET_INLINE constexpr int default_bias(int e, encoding x) {
  return (1 << (e - 1)) - (x == encoding::fnuz || x == encoding::p3109 ? 0 : 1);
}

// One byte, trivial and standard layout; fp8{} is code 00. The code lies in the low `width` bits; the bits above them
// are ignored in every code the library reads and zero in every code it makes (an operand that is returned is returned
// as it was).
template <int E, int M, encoding X = default_encoding(E, M), int Bias = default_bias(E, X)>
class OCTET_MAY_ALIAS fp8 {
  static constexpr int least = 1 - Bias;
  static_assert(E >= 1 && M >= 0 && E + M + (X != encoding::exponent) <= 8, "a format has at most 8 bits");
  static_assert(X == encoding::exponent ||
                    (E >= 2 && least <= 0 && least - M >= -120 && (1 << E) - 1 - Bias + 23 - M <= 127),
                "float holds every value, and everything up to 2^23 units of the largest binade");
  static_assert((X == encoding::exponent) == (M == 0), "encoding::exponent and only it has no mantissa");
  static_assert(X != encoding::exponent || (E == 8 && Bias == 127), "a power of two is E8M0");

  std::uint8_t code_;

 public:
  // The format, computed from the template arguments. Codes are of positive values, without the sign bit.
  static constexpr int exponent_bits = E;
  static constexpr int mantissa_bits = M;
  static constexpr int bias = Bias;
  static constexpr encoding special_codes = X;
  static constexpr bool is_signed = X != encoding::exponent;
  static constexpr int width = E + M + (is_signed ? 1 : 0);
  static constexpr int least_exponent =
      is_signed ? 1 - Bias : -Bias;  // of the smallest normal value, as a power of two
  static constexpr bool has_negative_zero = X == encoding::ieee || X == encoding::fn || X == encoding::finite;
  static constexpr bool has_infinity = X == encoding::ieee || X == encoding::p3109;
  static constexpr bool has_nan = X != encoding::finite;
  static constexpr std::uint8_t magnitude_mask = (1 << (E + M)) - 1;
  static constexpr std::uint8_t sign_mask = is_signed ? 1 << (E + M) : 0;
  static constexpr std::uint8_t max_code = X == encoding::ieee ? (((1 << E) - 1) << M) - 1
                                           : X == encoding::fn || X == encoding::p3109 || X == encoding::exponent
                                               ? magnitude_mask - 1
                                               : magnitude_mask;
  static constexpr std::uint8_t infinity_code = has_infinity ? max_code + 1 : max_code;
  static constexpr std::uint8_t nan_code = !has_nan                          ? max_code
                                           : has_negative_zero || !is_signed ? magnitude_mask
                                                                             : sign_mask;
  static constexpr rounding default_rounding = is_signed ? rounding::nearest_even : rounding::upward;

  fp8() = default;

  // From any number: rounds once (to nearest even; e8m0: up), saturates; NaN becomes the format's NaN, +largest where
  // it has none. To any number: exact where the target holds the value, else rounded to nearest even; integers truncate
  // and saturate, and NaN gives 0. Between formats: rounds once, saturates. All explicit; the bodies are in
  // convert.hpp.
  template <class T, std::enable_if_t<is_number_v<T>, int> = 0>
  OCTET_INLINE explicit constexpr fp8(T x);
  template <int E2, int M2, encoding X2, int Bias2>
  OCTET_INLINE explicit constexpr fp8(fp8<E2, M2, X2, Bias2> x);
  template <class T, std::enable_if_t<is_number_v<T>, int> = 0>
  OCTET_INLINE explicit constexpr operator T() const;

  OCTET_INLINE static constexpr fp8 from_bits(std::uint8_t code) {
    return bit_cast<fp8>(static_cast<std::uint8_t>(code & (magnitude_mask | sign_mask)));
  }
  OCTET_INLINE constexpr std::uint8_t bits() const { return code_ & (magnitude_mask | sign_mask); }

  // The code without its sign.
  OCTET_INLINE constexpr std::uint8_t magnitude() const { return code_ & magnitude_mask; }

  friend OCTET_INLINE constexpr bool signbit(fp8 x) { return (x.code_ & sign_mask) != 0; }
  friend OCTET_INLINE constexpr bool isnan(fp8 x) {
    if constexpr (is_signed && !has_negative_zero)
      return x.bits() == sign_mask;
    else
      return x.magnitude() > infinity_code;
  }
  friend OCTET_INLINE constexpr bool isinf(fp8 x) { return has_infinity && x.magnitude() == infinity_code; }
  friend OCTET_INLINE constexpr bool isfinite(fp8 x) { return !isnan(x) && !isinf(x); }

  friend OCTET_INLINE constexpr fp8 abs(fp8 x) { return isnan(x) && !has_negative_zero ? x : from_bits(x.magnitude()); }

  // Flips the sign, of NaN too where it has one; 0 stays 0 where the format has no -0. Not for e8m0.
  template <bool Signed = is_signed, std::enable_if_t<Signed, int> = 0>
  OCTET_INLINE constexpr fp8 operator-() const {
    return magnitude() == 0 && !has_negative_zero ? *this : from_bits(static_cast<std::uint8_t>(code_ ^ sign_mask));
  }

  // By value: NaN is unordered, +0 == -0.
  friend OCTET_INLINE constexpr bool operator==(fp8 a, fp8 b) {
    return !isnan(a) && !isnan(b) && a.order() == b.order();
  }
  friend OCTET_INLINE constexpr bool operator!=(fp8 a, fp8 b) { return !(a == b); }
  friend OCTET_INLINE constexpr bool operator<(fp8 a, fp8 b) { return !isnan(a) && !isnan(b) && a.order() < b.order(); }
  friend OCTET_INLINE constexpr bool operator>(fp8 a, fp8 b) { return b < a; }
  friend OCTET_INLINE constexpr bool operator<=(fp8 a, fp8 b) {
    return !isnan(a) && !isnan(b) && a.order() <= b.order();
  }
  friend OCTET_INLINE constexpr bool operator>=(fp8 a, fp8 b) { return b <= a; }

  // The next code from `from` in the direction of `to`; `to` if they are equal, NaN if one of them is.
  friend OCTET_INLINE constexpr fp8 nextafter(fp8 from, fp8 to) {
    if (isnan(from)) return from;
    if (isnan(to) || from.order() == to.order()) return to;
    const int next = from.order() + (from.order() < to.order() ? 1 : -1);
    const bool negative = next < 0 || (next == 0 && signbit(from) && has_negative_zero);
    return from_bits(static_cast<std::uint8_t>((next < 0 ? -next : next) | (negative ? sign_mask : 0)));
  }

  // The place of a value in the order of all values that are not NaN: sign and magnitude as one integer, both zeros 0.
  OCTET_INLINE constexpr int order() const { return (code_ & sign_mask) != 0 ? -int{magnitude()} : int{magnitude()}; }
};

using e4m3fn = fp8<4, 3>;  // OCP OFP8 1.0 E4M3: 448, no infinity
using e4m3 = e4m3fn;
using e5m2 = fp8<5, 2>;                             // OCP OFP8 1.0 E5M2: 57344, infinity and NaN
using e4m3_ieee = fp8<4, 3, encoding::ieee>;        // ml_dtypes float8_e4m3: 240
using e4m3fnuz = fp8<4, 3, encoding::fnuz>;         // AMD MI300: 240
using e5m2fnuz = fp8<5, 2, encoding::fnuz>;         // AMD MI300: 57344
using e4m3b11fnuz = fp8<4, 3, encoding::fnuz, 11>;  // 30
using e3m4 = fp8<3, 4>;                             // ml_dtypes float8_e3m4: 15.5
using p3109_p3 = fp8<5, 2, encoding::p3109>;        // IEEE P3109 draft 3.2 binary8p3: 49152
using p3109_p4 = fp8<4, 3, encoding::p3109>;        // IEEE P3109 draft 3.2 binary8p4: 224
using e8m0 = fp8<8, 0>;                             // OCP MX 1.0 scale: 2^-127 to 2^127
using e2m3 = fp8<2, 3>;                             // OCP MX 1.0 FP6: 7.5
using e3m2 = fp8<3, 2>;                             // OCP MX 1.0 FP6: 28
using e2m1 = fp8<2, 1>;                             // OCP MX 1.0 FP4: 6

template <class T>
inline constexpr bool is_fp8_v = false;
template <int E, int M, encoding X, int Bias>
inline constexpr bool is_fp8_v<fp8<E, M, X, Bias>> = true;

}  // namespace v0
}  // namespace octet
