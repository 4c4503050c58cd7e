// The machine below the device code: one function an instruction, in inline PTX; empty on the host.
// SPDX-License-Identifier: MIT
#pragma once

// The code of the first operand of cvt lies in the upper byte of the result. All of them are plain functions of their
// operands: no memory, no state, so the compiler may move them. Where an instruction is missing (config.hpp says which
// are there), nothing names its function, and a function that is not named is not assembled. Source: PTX ISA 9.0.
#if defined(__CUDA_ARCH__)

namespace octet {
inline namespace v0 {
namespace ptx {

// Two floats to two codes, `low` to the low byte: nearest even, saturating; NaN gives NaN, whose sign PTX does not fix.
template <int E>
__device__ __forceinline__ unsigned short encode_floats(float low, float high) {
  static_assert(E == 4 || E == 5, "E4M3 or E5M2");
  unsigned short codes;
  if constexpr (E == 4)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  else
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}

// Two halves in one word to two codes, each where its half was.
template <int E>
__device__ __forceinline__ unsigned short encode_halves(unsigned halves) {
  static_assert(E == 4 || E == 5, "E4M3 or E5M2");
  unsigned short codes;
  if constexpr (E == 4)
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(codes) : "r"(halves));
  else
    asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(codes) : "r"(halves));
  return codes;
}

// Two codes to two halves in one word, exactly; NaN gives 7FFF.
template <int E>
__device__ __forceinline__ unsigned decode_to_halves(unsigned short codes) {
  static_assert(E == 4 || E == 5, "E4M3 or E5M2");
  unsigned halves;
  if constexpr (E == 4)
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(codes));
  else
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(codes));
  return halves;
}

// A float to the nearest half, ties to even; NaN gives 7FFF.
__device__ __forceinline__ unsigned short narrow_to_half(float x) {
  unsigned short half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
  return half;
}

// A half to the float of the same value; NaN gives 7FFFFFFF.
__device__ __forceinline__ float widen_half(unsigned short half) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
  return x;
}

// Arithmetic with subnormals, rounded once to nearest even (where the name does not say otherwise), whatever
// -use_fast_math and -ftz make of `/`, `*`, `+` and `-`.
__device__ __forceinline__ float divide(float a, float b) {
  float quotient;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
  return quotient;
}
__device__ __forceinline__ float multiply(float a, float b) {
  float product;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
  return product;
}
// a * b - c and c - a * b.
__device__ __forceinline__ float multiply_subtract(float a, float b, float c) {
  float difference;
  asm("{ .reg .f32 t; neg.f32 t, %3; fma.rn.f32 %0, %1, %2, t; }" : "=f"(difference) : "f"(a), "f"(b), "f"(c));
  return difference;
}
__device__ __forceinline__ float subtract_product(float c, float a, float b) {
  float difference;
  asm("{ .reg .f32 t; neg.f32 t, %1; fma.rn.f32 %0, t, %2, %3; }" : "=f"(difference) : "f"(a), "f"(b), "f"(c));
  return difference;
}
__device__ __forceinline__ float multiply_toward_zero(float a, float b) {
  float product;
  asm("mul.rz.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
  return product;
}

}  // namespace ptx
}  // namespace v0
}  // namespace octet

#endif
