// The row of x86-64 machines with AVX2, FMA and F16C: Haswell, Zen and later.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_X86_64
#include "avx2/decode.hpp"
#include "avx2/dequantize.hpp"
#include "avx2/encode.hpp"
#include "avx2/measure.hpp"
#include "avx2/product.hpp"
#include "avx2/quantize.hpp"
#include "avx2/reduce.hpp"
#include "scalar.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx2 {

// Not every compiler has a name for F16C here; no x86-64 machine has AVX2 without it.
OCTET_LOCAL bool runs_here() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

struct row {
  static constexpr const char* name = "avx2";
  static constexpr bool (*runs_here)() = &avx2::runs_here;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&avx2::encode<F, T>, &avx2::decode<F, T>};
  template <class T>
  static constexpr reduction<T> reduces = {&avx2::amax<T>, &avx2::finite_amax<T>, &avx2::amax_each<T>,
                                           &avx2::amax_runs<T>};
  template <class F, class T>
  static constexpr scaled_conversion<F, T> scales = {
      &avx2::quantize<F, T>, &avx2::quantize_and_amax<F, T>, &avx2::quantize_each<F, T>,   &avx2::quantize_runs<F, T>,
      &avx2::scales_of<F>,   &avx2::dequantize<F, T>,        &avx2::dequantize_each<F, T>, &avx2::measure<F, T>};
  template <class F, class T>
  static constexpr product<F, T> products = {&scalar::arrange<T>, &avx2::multiply<F>, &avx2::dot<F, T>, &avx2::axpy<F>};
};

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet
#endif
