// Largest magnitudes in the AVX-512 row.
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
namespace avx512 {

// The larger magnitudes of a vector of values (as many of them as `lanes` has bits; the others are not read) and
// `largest`.
template <class T>
OCTET_ROW_INLINE __m512i larger(__m512i largest, const T* in, std::uint32_t lanes) {
  if constexpr (sizeof(T) == 4)
    return _mm512_max_epu32(largest, _mm512_and_si512(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(lanes), in),
                                                      _mm512_set1_epi32(0x7FFFFFFF)));
  else
    return _mm512_max_epu16(largest, _mm512_and_si512(_mm512_maskz_loadu_epi16(lanes, in), _mm512_set1_epi16(0x7FFF)));
}

// The largest magnitudes so far, in four vectors: a dependent chain would wait for each maximum.
template <class T>
struct largest_of {
  static constexpr std::size_t lanes = 64 / sizeof(T);
  static constexpr std::uint32_t all = static_cast<std::uint32_t>(~std::uint64_t{0} >> (64 - lanes));
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;

  OCTET_ROW_INLINE largest_of() {}
  OCTET_ROW_INLINE void add_four(const T* x) {  // 4 * lanes values
    a = larger(a, x, all);
    b = larger(b, x + lanes, all);
    c = larger(c, x + 2 * lanes, all);
    d = larger(d, x + 3 * lanes, all);
  }
  OCTET_ROW_INLINE void add_four_ahead(const T* x) {
    prefetch_lines<256>(somewhere(x, stream_ahead));
    add_four(x);
  }
  OCTET_ROW_INLINE void add_run(const T* x, std::size_t n) {
    std::size_t i = 0;
    for (; n - i >= 4 * lanes; i += 4 * lanes) add_four(x + i);
    for (; n - i >= lanes; i += lanes) a = larger(a, x + i, all);
    if (i < n) b = larger(b, x + i, (std::uint32_t{1} << (n - i)) - 1);
  }
  OCTET_ROW_INLINE exact::bits_of<T> value() const {
    if constexpr (sizeof(T) == 4) {
      return _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_max_epu32(a, b), _mm512_max_epu32(c, d)));
    } else {
      const __m512i words = _mm512_max_epu16(_mm512_max_epu16(a, b), _mm512_max_epu16(c, d));
      const __m512i low = _mm512_and_si512(words, _mm512_set1_epi32(0xFFFF)), high = _mm512_srli_epi32(words, 16);
      return static_cast<exact::bits_of<T>>(_mm512_reduce_max_epu32(_mm512_max_epu32(low, high)));
    }
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
    largest.add_run(in + i, n - i);
    return largest.value();
  }
}

// Adds the finite magnitudes of a vector of values (those of `lanes`) and counts the others.
template <class T>
OCTET_ROW_INLINE __m512i finite_larger(__m512i largest, const T* in, std::uint32_t lanes, std::size_t& not_finite) {
  const __m512i a = larger(_mm512_setzero_si512(), in, lanes);
  if constexpr (sizeof(T) == 4) {
    const __mmask16 finite = _mm512_cmplt_epu32_mask(a, _mm512_set1_epi32(0x7F800000));
    not_finite += 16 - static_cast<std::size_t>(__builtin_popcount(finite));
    return _mm512_mask_max_epu32(largest, finite, largest, a);
  } else {
    const __m512i limit = _mm512_set1_epi16(static_cast<short>(float_traits<T>::infinity));
    const __mmask32 finite = _mm512_cmplt_epu16_mask(a, limit);
    not_finite += 32 - static_cast<std::size_t>(__builtin_popcount(finite));
    return _mm512_mask_max_epu16(largest, finite, largest, a);
  }
}

template <class T>
OCTET_ROW exact::bits_of<T> finite_amax(const T* in, std::size_t n, std::size_t& not_finite) {
  if constexpr (!is_vector_source<T>) {
    return scalar::finite_amax(in, n, not_finite);
  } else {
    largest_of<T> largest;
    constexpr std::size_t lanes = largest.lanes;
    std::size_t i = 0, others = 0;
    for (; n - i >= 4 * lanes; i += 4 * lanes) {
      largest.a = finite_larger(largest.a, in + i, largest.all, others);
      largest.b = finite_larger(largest.b, in + i + lanes, largest.all, others);
      largest.c = finite_larger(largest.c, in + i + 2 * lanes, largest.all, others);
      largest.d = finite_larger(largest.d, in + i + 3 * lanes, largest.all, others);
    }
    for (; i < n; i += lanes) {
      const std::uint32_t some = n - i < lanes ? (std::uint32_t{1} << (n - i)) - 1 : largest.all;
      largest.a = finite_larger(largest.a, in + i, some, others);
    }
    not_finite += others;
    return largest.value();
  }
}

template <class T>
OCTET_ROW void amax_runs(const T* in, std::size_t width, std::size_t count, exact::bits_of<T>* amax, bool streams) {
  if constexpr (!is_vector_source<T>) {
    scalar::amax_runs(in, width, count, amax, streams);
  } else {
    for (std::size_t i = 0; i < count; ++i, in += width) {
      largest_of<T> largest;
      if (streams)
        for (std::size_t ahead = 0; ahead < width; ahead += 64 / sizeof(T))
          prefetch_lines<64>(somewhere(in + ahead, stream_ahead));
      largest.add_run(in, width);
      amax[i] = largest.value();
    }
  }
}

template <class T>
OCTET_ROW void amax_each(const T* in, exact::bits_of<T>* largest, std::size_t n) {
  if constexpr (!is_vector_source<T>) {
    scalar::amax_each(in, largest, n);
  } else {
    constexpr std::size_t lanes = largest_of<T>::lanes;
    std::size_t i = 0;
    for (; n - i >= lanes; i += lanes)
      _mm512_storeu_si512(largest + i, larger(_mm512_loadu_si512(largest + i), in + i, largest_of<T>::all));
    if (i == n) return;
    const std::uint32_t rest = (std::uint32_t{1} << (n - i)) - 1;
    if constexpr (sizeof(T) == 4) {
      const __mmask16 some = static_cast<__mmask16>(rest);
      _mm512_mask_storeu_epi32(largest + i, some, larger(_mm512_maskz_loadu_epi32(some, largest + i), in + i, rest));
    } else {
      _mm512_mask_storeu_epi16(largest + i, rest, larger(_mm512_maskz_loadu_epi16(rest, largest + i), in + i, rest));
    }
  }
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
