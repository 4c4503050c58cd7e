// Arithmetic on fp8: + - * / and a few functions of <cmath>, computed in float and rounded back once.
// SPDX-License-Identifier: MIT
#pragma once

#include <math.h>

#include "convert.hpp"

namespace octet {
inline namespace v0 {

// x op y = F(float(x) op float(y)): the float operation (exact for most pairs), then one rounding to nearest even that
// saturates. NaN in, NaN out (by bits); x / 0 is the float's infinity, so the largest value. Under -ffast-math what the
// float operation makes of infinities and of 0 / 0 is the compiler's. For sums of many products keep the
// sum in float: every step here loses what 8 bits cannot hold. Not for e8m0, whose values are scales.
#define OCTET_OPERATOR(op)                                                                                 \
  template <int E, int M, encoding X, int Bias, std::enable_if_t<X != encoding::exponent, int> = 0>        \
  OCTET_INLINE constexpr fp8<E, M, X, Bias> operator op(fp8<E, M, X, Bias> a, fp8<E, M, X, Bias> b) {      \
    using F = fp8<E, M, X, Bias>;                                                                          \
    return isnan(a) || isnan(b) ? F::from_bits(F::nan_code) : F(decode(a) op decode(b));                   \
  }                                                                                                        \
  template <int E, int M, encoding X, int Bias, std::enable_if_t<X != encoding::exponent, int> = 0>        \
  OCTET_INLINE constexpr fp8<E, M, X, Bias>& operator op##=(fp8<E, M, X, Bias>& a, fp8<E, M, X, Bias> b) { \
    return a = a op b;                                                                                     \
  }
OCTET_OPERATOR(+)
OCTET_OPERATOR(-)
OCTET_OPERATOR(*)
OCTET_OPERATOR(/)
#undef OCTET_OPERATOR

// The C library's function on the float, rounded back once. (Not std::sqrt and so on: those are inline functions that a
// linker may take from another unit.)
#define OCTET_FUNCTION(name)                                                                        \
  template <int E, int M, encoding X, int Bias, std::enable_if_t<X != encoding::exponent, int> = 0> \
  OCTET_INLINE fp8<E, M, X, Bias> name(fp8<E, M, X, Bias> x) {                                      \
    return fp8<E, M, X, Bias>(::name##f(decode(x)));                                                \
  }
OCTET_FUNCTION(sqrt)
OCTET_FUNCTION(exp)
OCTET_FUNCTION(log)
OCTET_FUNCTION(tanh)
OCTET_FUNCTION(floor)
OCTET_FUNCTION(ceil)
OCTET_FUNCTION(trunc)
#undef OCTET_FUNCTION

// a * b + c, rounded once: product and sum are exact in double wherever the result does not saturate.
template <int E, int M, encoding X, int Bias, std::enable_if_t<X != encoding::exponent, int> = 0>
OCTET_INLINE constexpr fp8<E, M, X, Bias> fma(fp8<E, M, X, Bias> a, fp8<E, M, X, Bias> b, fp8<E, M, X, Bias> c) {
  return fp8<E, M, X, Bias>(decode<double>(a) * decode<double>(b) + decode<double>(c));
}

// The smaller and the larger value, -0 below +0; the other one where one is NaN (IEEE 754-2019 9.6, minimumNumber and
// maximumNumber).
template <int E, int M, encoding X, int Bias>
OCTET_INLINE constexpr fp8<E, M, X, Bias> fmin(fp8<E, M, X, Bias> a, fp8<E, M, X, Bias> b) {
  return isnan(a) || b < a || (b == a && signbit(b)) ? b : a;
}
template <int E, int M, encoding X, int Bias>
OCTET_INLINE constexpr fp8<E, M, X, Bias> fmax(fp8<E, M, X, Bias> a, fp8<E, M, X, Bias> b) {
  return isnan(a) || a < b || (a == b && signbit(a)) ? b : a;
}

}  // namespace v0
}  // namespace octet
