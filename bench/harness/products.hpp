// What products with FP8 weights are compared with: the same product (one column) with float and bfloat16 weights.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "octet/octet.hpp"

#if OCTET_X86_64
#include <immintrin.h>
#endif

// Several loops for each type, of which the fastest on the machine counts. They differ in the vectors, in how far ahead
// they ask for the weights (near: into the first level, far: into the second), and in the rows at a time.

namespace harness {

inline constexpr std::size_t product_cols = 4096;

// In a loop with bfloat16 weights that widens them by shifting and masking, the even elements of two vectors meet the
// first vector of x and the odd ones the second: x is taken to be arranged so beforehand.
struct activations {
  const float* x;
  const octet::bfloat16* x_bfloat16;
};

// rows: an even number, one after the other from w on. y: as many.
struct product_loop {
  const char* name;
  bool (*runs_here)();
  void (*run)(const unsigned char* w, std::size_t rows, const activations& x, float* y);
};

namespace products {

// Asks for the lines of `Bytes` bytes that lie Near and Far bytes behind p; 0 asks for none.
template <int Near, int Far, int Bytes>
inline __attribute__((always_inline)) void ask(const unsigned char* p) {
#pragma GCC unroll 4
  for (int at = 0; at < Bytes; at += 64) {
    if (Near != 0) __builtin_prefetch(p + at + Near, 0, 3);
    if (Far != 0) __builtin_prefetch(p + at + Far, 0, 2);
  }
}

// -- Any machine: vectors of four floats ------------------------------------------------------------------------------

inline bool anywhere() { return true; }

typedef float four_floats __attribute__((vector_size(16)));
typedef std::uint32_t four_words __attribute__((vector_size(16)));

template <class To, class From>
inline __attribute__((always_inline)) To load(const From* p) {
  To v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline float total(const four_floats (&sums)[4]) {
  const four_floats s = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return (s[0] + s[1]) + (s[2] + s[3]);
}

template <int Near, int Far>
void float_plain(const unsigned char* w, std::size_t rows, const activations& a, float* y) {
  for (std::size_t r = 0; r < rows; ++r, w += 4 * product_cols) {
    four_floats sums[4] = {};
    for (std::size_t i = 0; i < product_cols; i += 16) {
      ask<Near, Far, 64>(w + 4 * i);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k)
        sums[k] += load<four_floats>(w + 4 * i + 16 * k) * load<four_floats>(a.x + i + 4 * k);
    }
    y[r] = total(sums);
  }
}

template <int Near, int Far>
void bfloat16_plain(const unsigned char* w, std::size_t rows, const activations& a, float* y) {
  for (std::size_t r = 0; r < rows; ++r, w += 2 * product_cols) {
    four_floats sums[4] = {};
    for (std::size_t i = 0; i < product_cols; i += 32) {
      ask<Near, Far, 64>(w + 2 * i);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k) {
        const four_words v = load<four_words>(w + 2 * i + 16 * k), even = v << 16, odd = v & 0xFFFF0000u;
        sums[k] += load<four_floats>(&even) * load<four_floats>(a.x + i + 8 * k);
        sums[k] += load<four_floats>(&odd) * load<four_floats>(a.x + i + 8 * k + 4);
      }
    }
    y[r] = total(sums);
  }
}

#if OCTET_X86_64

// g++ takes the undefined registers within its own intrinsics for mistakes.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

// -- AVX2 -------------------------------------------------------------------------------------------------------------

inline bool with_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

__attribute__((target("avx2,fma"))) inline float total(const __m256 (&sums)[4]) {
  alignas(32) float s[8];
  _mm256_store_ps(s, _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

template <int Near, int Far>
__attribute__((target("avx2,fma"))) void float_avx2(const unsigned char* w, std::size_t rows, const activations& a,
                                                    float* y) {
  for (std::size_t r = 0; r < rows; ++r, w += 4 * product_cols) {
    const float* row = reinterpret_cast<const float*>(w);
    __m256 sums[4] = {};
    for (std::size_t i = 0; i < product_cols; i += 32) {
      ask<Near, Far, 128>(w + 4 * i);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k)
        sums[k] = _mm256_fmadd_ps(_mm256_loadu_ps(row + i + 8 * k), _mm256_loadu_ps(a.x + i + 8 * k), sums[k]);
    }
    y[r] = total(sums);
  }
}

template <int Near, int Far>
__attribute__((target("avx2,fma"))) void bfloat16_avx2(const unsigned char* w, std::size_t rows, const activations& a,
                                                       float* y) {
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  for (std::size_t r = 0; r < rows; ++r, w += 2 * product_cols) {
    __m256 sums[4] = {};
    for (std::size_t i = 0; i < product_cols; i += 32) {
      ask<Near, Far, 64>(w + 2 * i);
#pragma GCC unroll 2
      for (std::size_t k = 0; k < 2; ++k) {
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + 2 * i + 32 * k));
        const __m256 even = _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
        const __m256 odd = _mm256_castsi256_ps(_mm256_and_si256(v, upper));
        sums[2 * k] = _mm256_fmadd_ps(even, _mm256_loadu_ps(a.x + i + 16 * k), sums[2 * k]);
        sums[2 * k + 1] = _mm256_fmadd_ps(odd, _mm256_loadu_ps(a.x + i + 16 * k + 8), sums[2 * k + 1]);
      }
    }
    y[r] = total(sums);
  }
}

// -- AVX-512 ----------------------------------------------------------------------------------------------------------

inline bool with_avx512() { return __builtin_cpu_supports("avx512f"); }
inline bool with_avx512bf16() { return with_avx512() && __builtin_cpu_supports("avx512bf16"); }

__attribute__((target("avx512f"))) inline float total(const __m512 (&sums)[4]) {
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

template <int Near, int Far>
__attribute__((target("avx512f"))) void float_avx512(const unsigned char* w, std::size_t rows, const activations& a,
                                                     float* y) {
  for (std::size_t r = 0; r < rows; ++r, w += 4 * product_cols) {
    __m512 sums[4] = {};
    for (std::size_t i = 0; i < product_cols; i += 64) {
      ask<Near, Far, 256>(w + 4 * i);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k)
        sums[k] = _mm512_fmadd_ps(_mm512_loadu_ps(w + 4 * i + 64 * k), _mm512_loadu_ps(a.x + i + 16 * k), sums[k]);
    }
    y[r] = total(sums);
  }
}

template <int Near, int Far>
__attribute__((target("avx512f"))) void bfloat16_avx512(const unsigned char* w, std::size_t rows, const activations& a,
                                                        float* y) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  for (std::size_t r = 0; r < rows; ++r, w += 2 * product_cols) {
    __m512 sums[4] = {};
    for (std::size_t i = 0; i < product_cols; i += 64) {
      ask<Near, Far, 128>(w + 2 * i);
#pragma GCC unroll 2
      for (std::size_t k = 0; k < 2; ++k) {
        const __m512i v = _mm512_loadu_si512(w + 2 * i + 64 * k);
        const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
        const __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(v, upper));
        sums[2 * k] = _mm512_fmadd_ps(even, _mm512_loadu_ps(a.x + i + 32 * k), sums[2 * k]);
        sums[2 * k + 1] = _mm512_fmadd_ps(odd, _mm512_loadu_ps(a.x + i + 32 * k + 16), sums[2 * k + 1]);
      }
    }
    y[r] = total(sums);
  }
}

// Two rows at a time, which share what is loaded of x. Behind the end of a row the next pair's row begins.
template <int Near>
__attribute__((target("avx512f"))) void bfloat16_pairs_avx512(const unsigned char* w, std::size_t rows,
                                                              const activations& a, float* y) {
  constexpr std::size_t row = 2 * product_cols;
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  for (std::size_t r = 0; r < rows; r += 2, w += 2 * row) {
    __m512 sums[2][4] = {};
    for (std::size_t i = 0; i < product_cols; i += 64) {
      const std::size_t ahead = Near + (2 * i + Near >= row ? row : 0);
      __m512 x[4];
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k) x[k] = _mm512_loadu_ps(a.x + i + 16 * k);
#pragma GCC unroll 2
      for (std::size_t s = 0; s < 2; ++s)
#pragma GCC unroll 2
        for (std::size_t k = 0; k < 2; ++k) {
          const unsigned char* const p = w + s * row + 2 * i + 64 * k;
          __builtin_prefetch(p + ahead, 0, 3);
          const __m512i v = _mm512_loadu_si512(p);
          const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
          const __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(v, upper));
          sums[s][2 * k] = _mm512_fmadd_ps(even, x[2 * k], sums[s][2 * k]);
          sums[s][2 * k + 1] = _mm512_fmadd_ps(odd, x[2 * k + 1], sums[s][2 * k + 1]);
        }
    }
    y[r] = total(sums[0]);
    y[r + 1] = total(sums[1]);
  }
}

// The processor's own dot product of bfloat16 pairs, with x in bfloat16. It flushes subnormals.
template <int Near, int Far>
__attribute__((target("avx512f,avx512bf16"))) void bfloat16_dot_avx512(const unsigned char* w, std::size_t rows,
                                                                       const activations& a, float* y) {
  const unsigned char* const x = reinterpret_cast<const unsigned char*>(a.x_bfloat16);
  for (std::size_t r = 0; r < rows; ++r, w += 2 * product_cols) {
    __m512 sums[4] = {};
    for (std::size_t i = 0; i < 2 * product_cols; i += 256) {
      ask<Near, Far, 256>(w + i);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k)
        sums[k] = _mm512_dpbf16_ps(sums[k], reinterpret_cast<__m512bh>(_mm512_loadu_si512(w + i + 64 * k)),
                                   reinterpret_cast<__m512bh>(_mm512_loadu_si512(x + i + 64 * k)));
    }
    y[r] = total(sums);
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif  // OCTET_X86_64

}  // namespace products

inline std::vector<product_loop> float_loops() {
  using namespace products;
  return {
#if OCTET_X86_64
    {"AVX-512, near 1 far 16 KiB", with_avx512, float_avx512<1024, 16384>},
        {"AVX-512, near 2 KiB", with_avx512, float_avx512<2048, 0>},
        {"AVX2, near 1 far 16 KiB", with_avx2, float_avx2<1024, 16384>},
#endif
        {"plain", anywhere, float_plain<0, 0>}, {"plain, near 1 far 16 KiB", anywhere, float_plain<1024, 16384>},
  };
}

inline std::vector<product_loop> bfloat16_loops() {
  using namespace products;
  return {
#if OCTET_X86_64
    {"AVX-512, near 1 far 16 KiB", with_avx512, bfloat16_avx512<1024, 16384>},
        {"AVX-512, near 2 far 16 KiB", with_avx512, bfloat16_avx512<2048, 16384>},
        {"AVX-512, two rows, near 2 KiB", with_avx512, bfloat16_pairs_avx512<2048>},
        {"vdpbf16, near 1 far 16 KiB", with_avx512bf16, bfloat16_dot_avx512<1024, 16384>},
        {"AVX2, near 1 far 16 KiB", with_avx2, bfloat16_avx2<1024, 16384>},
#endif
        {"plain", anywhere, bfloat16_plain<0, 0>}, {"plain, near 1 far 16 KiB", anywhere, bfloat16_plain<1024, 16384>},
  };
}

}  // namespace harness
