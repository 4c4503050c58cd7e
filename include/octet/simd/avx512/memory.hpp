// What all of the AVX-512 row is made of: its roundings, and vectors of 64 values from and to memory.
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
namespace avx512 {

// Every rounding of the row, but those of the sums of products, is embedded in its instruction, so the control register
// has no say; subnormal floats, which it could flush, are either far below half a unit of every format or are left to the
// scalar row.
inline constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
inline constexpr int truncate = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
inline constexpr int least_magnitude = 0b0010,
                     greatest_magnitude = 0b0011;  // vrangeps: by magnitude, with the sign of x

// The lanes of 64 elements that lie within n, 16 at a time.
struct span64 {
  std::uint64_t lanes;
  OCTET_HOST_INLINE explicit span64(std::size_t n) : lanes(n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) {}
  OCTET_HOST_INLINE std::uint16_t part(int k) const { return static_cast<std::uint16_t>(lanes >> (16 * k)); }
};

// 16 values as floats; lanes outside are +0 and not read.
template <class T>
OCTET_ROW_INLINE __m512 load16(const T* x, __mmask16 lanes) {
  if constexpr (std::is_same_v<T, float>)
    return _mm512_maskz_loadu_ps(lanes, x);
  else if constexpr (is_bfloat16<T>)
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, x)), 16));
  else
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, x));
}

OCTET_ROW_INLINE __m256i load_halves(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// The lanes that are NaN, by their class: -ffast-math folds comparisons with NaN, this it knows nothing of.
OCTET_ROW_INLINE __mmask16 nan16(__m512 x) { return _mm512_fpclass_ps_mask(x, 0x81); }

// The lanes where one of two is NaN. In assembly for the same reason: one instruction for two vectors.
OCTET_ROW_INLINE __mmask16 nan_in_either(__m512 x, __m512 y) {
  __mmask16 lanes;
  __asm__("vcmpunordps %2, %1, %0" : "=k"(lanes) : "v"(x), "v"(y));
  return lanes;
}

// 64 lanes of bytes from four times 16 lanes of words.
OCTET_ROW_INLINE __mmask64 join64(__mmask16 a, __mmask16 b, __mmask16 c, __mmask16 d) {
  return _mm512_kunpackd(_mm512_kunpackw(d, c), _mm512_kunpackw(b, a));
}

// 64 values as floats, 16 a vector. Written out four times wherever they are made: at -O2 g++ leaves a loop of four a
// loop, and its array in memory.
struct floats64 {
  __m512 at[4];
};
template <class T>
OCTET_ROW_INLINE floats64 load64(const T* x, span64 s) {
  return {{load16(x, s.part(0)), load16(x + 16, s.part(1)), load16(x + 32, s.part(2)), load16(x + 48, s.part(3))}};
}

// All of 64 values in the order that is cheapest: bfloat16 as the even and the odd ones of 32, twice.
template <class T>
OCTET_ROW_INLINE floats64 load64(const T* x) {
  if constexpr (std::is_same_v<T, float>) {
    return {{_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16), _mm512_loadu_ps(x + 32), _mm512_loadu_ps(x + 48)}};
  } else if constexpr (is_bfloat16<T>) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
    const __m512i v = _mm512_loadu_si512(x), w = _mm512_loadu_si512(x + 32);
    return {{_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)), _mm512_castsi512_ps(_mm512_and_si512(v, upper)),
             _mm512_castsi512_ps(_mm512_slli_epi32(w, 16)), _mm512_castsi512_ps(_mm512_and_si512(w, upper))}};
  } else {
    return {{_mm512_cvtph_ps(load_halves(x)), _mm512_cvtph_ps(load_halves(x + 16)),
             _mm512_cvtph_ps(load_halves(x + 32)), _mm512_cvtph_ps(load_halves(x + 48))}};
  }
}

template <std::size_t Bytes>
OCTET_ROW_INLINE void prefetch_lines(const void* p) {
  for (std::size_t b = 0; b < Bytes; b += 64) _mm_prefetch(static_cast<const char*>(p) + b, _MM_HINT_T0);
}

// 64 bytes to memory, or past the cache.
template <bool Streams>
OCTET_ROW_INLINE void store64(void* out, __m512i v) {
  if constexpr (Streams)
    _mm512_stream_si512(static_cast<__m512i*>(out), v);
  else
    _mm512_storeu_si512(out, v);
}
template <bool Streams>
OCTET_ROW_INLINE void store_floats(float* out, const floats64& x) {
  store64<Streams>(out, _mm512_castps_si512(x.at[0]));
  store64<Streams>(out + 16, _mm512_castps_si512(x.at[1]));
  store64<Streams>(out + 32, _mm512_castps_si512(x.at[2]));
  store64<Streams>(out + 48, _mm512_castps_si512(x.at[3]));
}
// Those of 64 codes, 64 16-bit words and 64 floats that lie within the span; or past the cache all of them.
template <bool Streams>
OCTET_ROW_INLINE void store_codes(void* out, __m512i v, span64 s) {
  if constexpr (Streams)
    store64<true>(out, v);
  else
    _mm512_mask_storeu_epi8(out, s.lanes, v);
}
template <bool Streams, class T>
OCTET_ROW_INLINE void store_words(T* out, __m512i v, __m512i w, span64 s) {
  if constexpr (Streams) {
    store64<true>(out, v);
    store64<true>(out + 32, w);
  } else {
    _mm512_mask_storeu_epi16(out, static_cast<__mmask32>(s.lanes), v);
    _mm512_mask_storeu_epi16(out + 32, static_cast<__mmask32>(s.lanes >> 32), w);
  }
}
template <bool Streams>
OCTET_ROW_INLINE void store_floats(float* out, const floats64& x, span64 s) {
  if constexpr (Streams) return store_floats<true>(out, x);
  _mm512_mask_storeu_ps(out, s.part(0), x.at[0]);
  _mm512_mask_storeu_ps(out + 16, s.part(1), x.at[1]);
  _mm512_mask_storeu_ps(out + 32, s.part(2), x.at[2]);
  _mm512_mask_storeu_ps(out + 48, s.part(3), x.at[3]);
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
