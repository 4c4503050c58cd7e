// Who compiles: the one file that asks, and the few macros the other headers are written with.
// SPDX-License-Identifier: MIT
#pragma once

// NVRTC has no standard headers; the toolkit's own stand in for the little that floors 1 to 3 need. (So there is a name
// octet::std there, and `using namespace octet` makes `std` ambiguous.)
#if defined(__CUDACC_RTC__)
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <cuda/std/type_traits>
namespace octet {
inline namespace v0 {
namespace std = ::cuda::std;
}
}  // namespace octet
#else
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#endif

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201703L
#error "Octet needs C++17 or later"
#endif

#define OCTET_VERSION_MAJOR 0
#define OCTET_VERSION_MINOR 1
#define OCTET_VERSION_PATCH 0

// Every function of the library is one of two kinds, so that what one translation unit's compiler flags made of it
// never reaches the calls of another: OCTET_INLINE functions are always inlined, OCTET_LOCAL functions have internal
// linkage. Structs with member initialisers declare their constructors, since a compiler's own constructor would be
// neither. The price is formal: an inline function that names a local one is not the same entity in two units, and no
// header unit.
#if defined(__CUDACC__)
#define OCTET_HOST_DEVICE __host__ __device__
#else
#define OCTET_HOST_DEVICE
#endif

// A loop in device code over arrays that must stay in registers.
#if defined(__CUDA_ARCH__)
#define OCTET_UNROLL _Pragma("unroll")
#else
#define OCTET_UNROLL
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define OCTET_INLINE OCTET_HOST_DEVICE __forceinline
#define OCTET_HOST_INLINE __forceinline
#define OCTET_LOCAL [[maybe_unused]] static
#define OCTET_COLD [[maybe_unused]] static __declspec(noinline)
#define OCTET_MAY_ALIAS
#define OCTET_RESTRICT __restrict
#else
#define OCTET_INLINE OCTET_HOST_DEVICE __attribute__((always_inline)) inline
#define OCTET_HOST_INLINE __attribute__((always_inline)) inline
#define OCTET_LOCAL [[maybe_unused]] static
#define OCTET_COLD [[maybe_unused]] static __attribute__((noinline, cold))
// One-byte and one-float views of a caller's buffer are correct whatever type the buffer was written as.
#define OCTET_MAY_ALIAS __attribute__((__may_alias__))
#define OCTET_RESTRICT __restrict__
#endif

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#define OCTET_EXCEPTIONS 1
#else
#define OCTET_EXCEPTIONS 0
#endif

// Machines with rows of kernels of their own.
#if defined(__x86_64__) && defined(__GNUC__)
#define OCTET_X86_64 1
#else
#define OCTET_X86_64 0
#endif
#if defined(__aarch64__) && defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OCTET_AARCH64 1
#else
#define OCTET_AARCH64 0
#endif

// Compilers whose assemblers know the AVX512-FP16 instructions.
#if defined(__clang__)
#define OCTET_HAS_AVX512FP16 (OCTET_X86_64 && __clang_major__ >= 14)
#else
#define OCTET_HAS_AVX512FP16 (OCTET_X86_64 && __GNUC__ >= 12)
#endif

// Device code for a GPU that converts E4M3 and E5M2 in hardware: sm_90 and later, and sm_89, for which CUDA 12.1 was the
// first to know it.
#if defined(__CUDA_ARCH__)
#define OCTET_HAS_FP8_INSTRUCTIONS \
  (__CUDA_ARCH__ >= 900 || (__CUDA_ARCH__ >= 890 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201))
#else
#define OCTET_HAS_FP8_INSTRUCTIONS 0
#endif

// Device code for a GPU that computes with two 16-bit floats in one word.
#if defined(__CUDA_ARCH__)
#define OCTET_HAS_PAIR_INSTRUCTIONS (__CUDA_ARCH__ >= 800)
#else
#define OCTET_HAS_PAIR_INSTRUCTIONS 0
#endif

// Device code for a family of GPUs or for one of it (sm_100f, sm_100a, sm_120a, ...; not sm_100, which later GPUs run too)
// that converts E8M0, FP6 and FP4 in hardware: those of compute capability 10 to 12. CUDA 12.9 was the first to say which
// family it is; 12.8 named the architecture only.
#if defined(__CUDA_ARCH__) && defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
#define OCTET_HAS_FAMILY_INSTRUCTIONS (__CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000 && __CUDA_ARCH_FAMILY_SPECIFIC__ < 1300)
#elif defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM101_ALL) || defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define OCTET_HAS_FAMILY_INSTRUCTIONS 1
#else
#define OCTET_HAS_FAMILY_INSTRUCTIONS 0
#endif

// The compiler's own 16-bit types. g++ 12 (x86) and 13 (elsewhere) and clang 15 brought _Float16 to C++; clang 14
// defines the limits macro without the type. C++23's std::float16_t is the same type; std::bfloat16_t came with g++ 13.
#if !defined(__FLT16_MANT_DIG__) || defined(__CUDACC__)
#define OCTET_HAS_FLOAT16 0
#elif defined(__clang__) && __clang_major__ >= 15
#define OCTET_HAS_FLOAT16 1
#elif !defined(__clang__) && (__GNUC__ >= 13 || (__GNUC__ == 12 && defined(__x86_64__)))
#define OCTET_HAS_FLOAT16 1
#else
#define OCTET_HAS_FLOAT16 0
#endif

#if defined(__STDCPP_BFLOAT16_T__) && !defined(__CUDACC__)
#define OCTET_HAS_BFLOAT16 1
#else
#define OCTET_HAS_BFLOAT16 0
#endif

namespace octet {
inline namespace v0 {

// To{from}, the same bits; std::bit_cast came with C++20.
template <class To, class From>
OCTET_INLINE constexpr To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  return __builtin_bit_cast(To, from);
}

}  // namespace v0
}  // namespace octet
