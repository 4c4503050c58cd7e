// Largest magnitudes in the AVX2 row.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include "../scalar.hpp"
#include "memory.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx2 {

// Magnitudes of 8 floats or of 16 16-bit floats, and their maximum; positive as signed integers.
template <class T>
OCTET_ROW_INLINE __m256i magnitudes(const T* x) {
  if constexpr (sizeof(T) == 4)
    return _mm256_and_si256(load(x), _mm256_set1_epi32(magnitude_bits));
  else
    return _mm256_and_si256(load(x), _mm256_set1_epi16(0x7FFF));
}
template <class T>
OCTET_ROW_INLINE __m256i larger(__m256i a, __m256i b) {
  if constexpr (sizeof(T) == 4)
    return _mm256_max_epi32(a, b);
  else
    return _mm256_max_epi16(a, b);
}

// The largest lane.
template <class T>
OCTET_ROW_INLINE exact::bits_of<T> largest_lane(__m256i v) {
  v = larger<T>(v, _mm256_permute2x128_si256(v, v, 1));
  v = larger<T>(v, _mm256_shuffle_epi32(v, 0x4E));
  v = larger<T>(v, _mm256_shuffle_epi32(v, 0xB1));
  if constexpr (sizeof(T) == 2) v = larger<T>(v, _mm256_srli_epi32(v, 16));
  return static_cast<exact::bits_of<T>>(_mm256_cvtsi256_si32(v));
}

// The largest magnitudes so far, in four vectors: a dependent chain would wait for each maximum.
template <class T>
struct largest_of {
  static constexpr std::size_t lanes = 32 / sizeof(T);
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;

  OCTET_ROW_INLINE largest_of() {}
  OCTET_ROW_INLINE void add_four(const T* x) {  // 4 * lanes values
    a = larger<T>(a, magnitudes(x));
    b = larger<T>(b, magnitudes(x + lanes));
    c = larger<T>(c, magnitudes(x + 2 * lanes));
    d = larger<T>(d, magnitudes(x + 3 * lanes));
  }
  OCTET_ROW_INLINE void add_four_ahead(const T* x) {
    prefetch_lines<128>(somewhere(x, stream_ahead));
    add_four(x);
  }
  // The largest of these and of the n values from x on.
  OCTET_ROW_INLINE exact::bits_of<T> with_run(const T* x, std::size_t n) {
    std::size_t i = 0;
    for (; n - i >= 4 * lanes; i += 4 * lanes) add_four(x + i);
    for (; n - i >= lanes; i += lanes) a = larger<T>(a, magnitudes(x + i));
    const exact::bits_of<T> rest = n != i ? scalar::amax(x + i, n - i, false) : exact::bits_of<T>{0};
    const exact::bits_of<T> largest = largest_lane<T>(larger<T>(larger<T>(a, b), larger<T>(c, d)));
    return rest > largest ? rest : largest;
  }
};

template <class T>
OCTET_ROW exact::bits_of<T> amax(const T* in, std::size_t n, bool streams) {
  if constexpr (!is_vector_source<T>) {
    return scalar::amax(in, n, streams);
  } else {
    largest_of<T> largest;
    constexpr std::size_t four = 4 * largest_of<T>::lanes;
    std::size_t i = 0;
    if (streams)
      for (; n - i >= four; i += four) largest.add_four_ahead(in + i);
    return largest.with_run(in + i, n - i);
  }
}

template <class T>
OCTET_ROW exact::bits_of<T> finite_amax(const T* in, std::size_t n, std::size_t& not_finite) {
  std::size_t i = 0;
  exact::bits_of<T> result = 0;
  if constexpr (is_vector_source<T>) {
    constexpr std::size_t lanes = 32 / sizeof(T);
    const __m256i limit =
        sizeof(T) == 4 ? _mm256_set1_epi32(infinity) : _mm256_set1_epi16(static_cast<short>(float_traits<T>::infinity));
    __m256i largest = _mm256_setzero_si256();
    for (; n - i >= lanes; i += lanes) {
      const __m256i a = magnitudes(in + i);
      const __m256i finite = sizeof(T) == 4 ? _mm256_cmpgt_epi32(limit, a) : _mm256_cmpgt_epi16(limit, a);
      const auto bytes = static_cast<unsigned>(_mm256_movemask_epi8(finite));
      not_finite += static_cast<std::size_t>(__builtin_popcount(~bytes)) / sizeof(T);
      largest = larger<T>(largest, _mm256_and_si256(a, finite));
    }
    result = largest_lane<T>(largest);
  }
  const exact::bits_of<T> rest = scalar::finite_amax(in + i, n - i, not_finite);
  return rest > result ? rest : result;
}

template <class T>
OCTET_ROW void amax_each(const T* in, exact::bits_of<T>* largest, std::size_t n) {
  std::size_t i = 0;
  if constexpr (is_vector_source<T>) {
    constexpr std::size_t lanes = 32 / sizeof(T);
    for (; i + lanes <= n; i += lanes) store(largest + i, larger<T>(load(largest + i), magnitudes(in + i)));
  }
  scalar::amax_each(in + i, largest + i, n - i);
}

template <class T>
OCTET_ROW void amax_runs(const T* in, std::size_t width, std::size_t count, exact::bits_of<T>* amax, bool streams) {
  if constexpr (!is_vector_source<T>)
    scalar::amax_runs(in, width, count, amax, streams);
  else
    for (std::size_t i = 0; i < count; ++i) amax[i] = largest_of<T>().with_run(in + i * width, width);
}

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
