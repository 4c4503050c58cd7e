// The row of x86-64 machines with AVX-512 (F, BW, DQ, VL, VBMI) and GFNI: Ice Lake, Sapphire Rapids, Zen 4 and later.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_X86_64
#include <cpuid.h>

#include "avx512/decode.hpp"
#include "avx512/dequantize.hpp"
#include "avx512/encode.hpp"
#include "avx512/measure.hpp"
#include "avx512/product.hpp"
#include "avx512/quantize.hpp"
#include "avx512/reduce.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx512 {

OCTET_LOCAL bool runs_here() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("gfni");
}

struct row {
  static constexpr const char* name = "avx512";
  static constexpr bool (*runs_here)() = &avx512::runs_here;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&avx512::encode<F, T, false>, &avx512::decode<F, T>};
  template <class T>
  static constexpr reduction<T> reduces = {&avx512::amax<T>, &avx512::finite_amax<T>, &avx512::amax_each<T>,
                                           &avx512::amax_runs<T>};
  template <class F, class T>
  static constexpr scaled_conversion<F, T> scales = {&avx512::quantize<F, T>,        &avx512::quantize_and_amax<F, T>,
                                                     &avx512::quantize_each<F, T>,   &avx512::quantize_runs<F, T>,
                                                     &avx512::scales_of<F>,          &avx512::dequantize<F, T>,
                                                     &avx512::dequantize_each<F, T>, &avx512::measure<F, T>};
  template <class F, class T>
  static constexpr product<F, T> products = {&avx512::arrange<T>, &avx512::multiply<F>, &avx512::dot<F, T>,
                                             &avx512::axpy<F>};
};

#if OCTET_HAS_AVX512FP16
// Sapphire Rapids and later encode 16-bit values in lanes of 16 bits.
// Not every compiler has a name for the feature.
OCTET_LOCAL bool runs_here_with_fp16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return runs_here() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 23 & 1) != 0;
}

struct row_with_fp16 : row {
  static constexpr const char* name = "avx512_fp16";
  static constexpr bool (*runs_here)() = &avx512::runs_here_with_fp16;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&avx512::encode<F, T, true>, &avx512::decode<F, T>};
};
#endif

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet
#endif
