// What all of the AVX2 row is made of: its constants, and vectors of 32 values from and to memory.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include <immintrin.h>

#include "../kernels.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx2 {

// Rounding follows the control register here: what must round to nearest even asks scalar::rounds_to_nearest() once a
// call, and is left to the scalar row otherwise. Magnitudes are clamped and compared as integers, of which neither a
// flush-to-zero mode nor -ffast-math knows.
inline constexpr int sign_bit = static_cast<int>(0x80000000), magnitude_bits = 0x7FFFFFFF, infinity = 0x7F800000;

OCTET_ROW_INLINE __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
OCTET_ROW_INLINE __m128i load_half(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
OCTET_ROW_INLINE void store(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
template <bool Streams>
OCTET_ROW_INLINE void store(void* p, __m256i v) {
  if constexpr (Streams)
    _mm256_stream_si256(static_cast<__m256i*>(p), v);
  else
    store(p, v);
}

template <std::size_t Bytes>
OCTET_ROW_INLINE void prefetch_lines(const void* p) {
  for (std::size_t b = 0; b < Bytes; b += 64) _mm_prefetch(static_cast<const char*>(p) + b, _MM_HINT_T0);
}

// Vectors of 32 values, written out wherever they are made: at -O2 g++ leaves a loop of four a loop, and its array in
// memory.
struct words32 {
  __m256i at[4];
};
OCTET_ROW_INLINE __m256i merged_max(const words32& w) {
  return _mm256_max_epi32(_mm256_max_epi32(w.at[0], w.at[1]), _mm256_max_epi32(w.at[2], w.at[3]));
}
OCTET_ROW_INLINE bool any(__m256i mask) { return _mm256_movemask_epi8(mask) != 0; }

// The bits of 8 values as floats. F16C widens subnormals whatever the control register says.
template <class T>
OCTET_ROW_INLINE __m256i load8(const T* x) {
  if constexpr (std::is_same_v<T, float>)
    return load(x);
  else if constexpr (is_bfloat16<T>)
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half(x)), 16);
  else
    return _mm256_castps_si256(_mm256_cvtph_ps(load_half(x)));
}
template <class T>
OCTET_ROW_INLINE words32 words_in_order(const T* x) {
  return {{load8(x), load8(x + 8), load8(x + 16), load8(x + 24)}};
}
OCTET_ROW_INLINE words32 magnitudes32(const words32& w) {
  const __m256i mask = _mm256_set1_epi32(magnitude_bits);
  return {{_mm256_and_si256(w.at[0], mask), _mm256_and_si256(w.at[1], mask), _mm256_and_si256(w.at[2], mask),
           _mm256_and_si256(w.at[3], mask)}};
}

struct floats32 {
  __m256 at[4];
};
OCTET_ROW_INLINE floats32 load_floats(const float* p) {
  return {{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), _mm256_loadu_ps(p + 16), _mm256_loadu_ps(p + 24)}};
}
template <bool Streams>
OCTET_ROW_INLINE void store_floats(float* out, const floats32& x) {
  store<Streams>(out, _mm256_castps_si256(x.at[0]));
  store<Streams>(out + 8, _mm256_castps_si256(x.at[1]));
  store<Streams>(out + 16, _mm256_castps_si256(x.at[2]));
  store<Streams>(out + 24, _mm256_castps_si256(x.at[3]));
}

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
