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

// -- E4M3, E5M2, FP6 and FP4: a row a format -------------------------------------------------------------------------

// Two floats to two codes, `low` to the low byte: nearest even, saturating. NaN gives NaN, whose sign PTX does not fix,
// or where the format has none the positive largest value.
template <int E, int M>
__device__ unsigned short encode_floats(float low, float high);
template <>
__device__ __forceinline__ unsigned short encode_floats<4, 3>(float low, float high) {
  unsigned short codes;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}
template <>
__device__ __forceinline__ unsigned short encode_floats<5, 2>(float low, float high) {
  unsigned short codes;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}
template <>
__device__ __forceinline__ unsigned short encode_floats<2, 3>(float low, float high) {
  unsigned short codes;
  asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}
template <>
__device__ __forceinline__ unsigned short encode_floats<3, 2>(float low, float high) {
  unsigned short codes;
  asm("cvt.rn.satfinite.e3m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}
// The instruction packs two codes of FP4 in one byte.
template <>
__device__ __forceinline__ unsigned short encode_floats<2, 1>(float low, float high) {
  unsigned short packed;
  asm("{ .reg .b8 byte; cvt.rn.satfinite.e2m1x2.f32 byte, %1, %2; mov.b16 %0, {byte, 0}; }"
      : "=h"(packed)
      : "f"(high), "f"(low));
  return static_cast<unsigned short>((packed | packed << 4) & 0x0F0F);
}

// Two halves in one word to two codes, each where its half was; as from floats.
template <int E, int M>
__device__ unsigned short encode_halves(unsigned halves);
template <>
__device__ __forceinline__ unsigned short encode_halves<4, 3>(unsigned halves) {
  unsigned short codes;
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(codes) : "r"(halves));
  return codes;
}
template <>
__device__ __forceinline__ unsigned short encode_halves<5, 2>(unsigned halves) {
  unsigned short codes;
  asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(codes) : "r"(halves));
  return codes;
}

// Two codes, their unused bits 0, to two halves in one word, exactly; NaN gives 7FFF.
template <int E, int M>
__device__ unsigned decode_to_halves(unsigned short codes);
template <>
__device__ __forceinline__ unsigned decode_to_halves<4, 3>(unsigned short codes) {
  unsigned halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(codes));
  return halves;
}
template <>
__device__ __forceinline__ unsigned decode_to_halves<5, 2>(unsigned short codes) {
  unsigned halves;
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(codes));
  return halves;
}
template <>
__device__ __forceinline__ unsigned decode_to_halves<2, 3>(unsigned short codes) {
  unsigned halves;
  asm("cvt.rn.f16x2.e2m3x2 %0, %1;" : "=r"(halves) : "h"(codes));
  return halves;
}
template <>
__device__ __forceinline__ unsigned decode_to_halves<3, 2>(unsigned short codes) {
  unsigned halves;
  asm("cvt.rn.f16x2.e3m2x2 %0, %1;" : "=r"(halves) : "h"(codes));
  return halves;
}
template <>
__device__ __forceinline__ unsigned decode_to_halves<2, 1>(unsigned short codes) {
  const auto packed = static_cast<unsigned short>(codes | codes >> 4);
  unsigned halves;
  asm("{ .reg .b8 byte, rest; mov.b16 {byte, rest}, %1; cvt.rn.f16x2.e2m1x2 %0, byte; }" : "=r"(halves) : "h"(packed));
  return halves;
}

// -- E8M0 -------------------------------------------------------------------------------------------------------------

// Two floats, or two bfloat16s in one word, to two codes: up or toward zero, saturating; NaN gives FF. The values are
// not negative: what PTX says does not tell whether the sign or the rounding is first.
__device__ __forceinline__ unsigned short exponents_of_floats_up(float low, float high) {
  unsigned short codes;
  asm("cvt.rp.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}
__device__ __forceinline__ unsigned short exponents_of_floats_toward_zero(float low, float high) {
  unsigned short codes;
  asm("cvt.rz.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}
__device__ __forceinline__ unsigned short exponents_of_bfloat16s_up(unsigned bfloat16s) {
  unsigned short codes;
  asm("cvt.rp.satfinite.ue8m0x2.bf16x2 %0, %1;" : "=h"(codes) : "r"(bfloat16s));
  return codes;
}
__device__ __forceinline__ unsigned short exponents_of_bfloat16s_toward_zero(unsigned bfloat16s) {
  unsigned short codes;
  asm("cvt.rz.satfinite.ue8m0x2.bf16x2 %0, %1;" : "=h"(codes) : "r"(bfloat16s));
  return codes;
}

// Two codes to two bfloat16s in one word, exactly; NaN gives 7FFF.
__device__ __forceinline__ unsigned decode_to_bfloat16s(unsigned short exponents) {
  unsigned bfloat16s;
  asm("cvt.rn.bf16x2.ue8m0x2 %0, %1;" : "=r"(bfloat16s) : "h"(exponents));
  return bfloat16s;
}

// -- Floats -----------------------------------------------------------------------------------------------------------

// Two floats to the nearest halves or bfloat16s in one word, `low` in the low half, ties to even; NaN gives 7FFF.
__device__ __forceinline__ unsigned narrow_to_halves(float low, float high) {
  unsigned halves;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
  return halves;
}
__device__ __forceinline__ unsigned narrow_to_bfloat16s(float low, float high) {
  unsigned bfloat16s;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bfloat16s) : "f"(high), "f"(low));
  return bfloat16s;
}

// The larger of two halves or bfloat16s, for each half of a word; NaN gives 7FFF.
__device__ __forceinline__ unsigned larger_halves(unsigned a, unsigned b) {
  unsigned larger;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}
__device__ __forceinline__ unsigned larger_bfloat16s(unsigned a, unsigned b) {
  unsigned larger;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
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
