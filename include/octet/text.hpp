// Values as text: to_string, and operator<< on streams.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <ostream>
#include <string>

#include "convert.hpp"

namespace octet {
inline namespace v0 {

// The exact decimal value, without trailing zeros: "448", "0.001953125", "-0", "nan", "-inf" (17 digits where the value
// has more, as E8M0's can). The decimal point is that of the C locale in force (LC_NUMERIC). decode and std::strtod
// take the text back to the same code.
template <class F, std::enable_if_t<is_fp8_v<F>, int> = 0>
OCTET_HOST_INLINE std::string to_string(F x) {
  if (isnan(x)) return "nan";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", decode<double>(x));
  return text;
}

// As the float with that value: the stream's precision, width and flags apply; NaN is "nan".
template <int E, int M, encoding X, int Bias>
OCTET_HOST_INLINE std::ostream& operator<<(std::ostream& stream, fp8<E, M, X, Bias> x) {
  return isnan(x) ? stream << "nan" : stream << decode<float>(x);
}

}  // namespace v0
}  // namespace octet
