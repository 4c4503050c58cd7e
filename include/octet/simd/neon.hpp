// The row of aarch64 machines: Advanced SIMD is part of every one of them.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_AARCH64
#include "neon/decode.hpp"
#include "neon/dequantize.hpp"
#include "neon/encode.hpp"
#include "neon/quantize.hpp"
#include "neon/reduce.hpp"
#include "scalar.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace neon {

OCTET_LOCAL bool runs_here() { return true; }

struct row {
  static constexpr const char* name = "neon";
  static constexpr bool (*runs_here)() = &neon::runs_here;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&neon::encode<F, T>, &neon::decode<F, T>};
  template <class T>
  static constexpr reduction<T> reduces = {&neon::amax<T>, &scalar::finite_amax<T>, &neon::amax_each<T>,
                                           &neon::amax_runs<T>};
  template <class F, class T>
  static constexpr scaled_conversion<F, T> scales = {
      &neon::quantize<F, T>, &neon::quantize_and_amax<F, T>, &neon::quantize_each<F, T>,   &neon::quantize_runs<F, T>,
      &scalar::scales_of<F>, &neon::dequantize<F, T>,        &neon::dequantize_each<F, T>, &scalar::measure<F, T>};
  template <class F, class T>
  static constexpr product<F, T> products = scalar::row::products<F, T>;
};

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet
#endif
