// Quantizing in the AVX-512 row: by one scale, with the next run's largest magnitude meanwhile, or by one scale an element.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include "../scalar.hpp"
#include "encode.hpp"
#include "memory.hpp"
#include "reduce.hpp"
#include "scale.hpp"
#include "walk.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx512 {

template <class Scale, class F, class T>
OCTET_ROW_INLINE encoding<F, true, Scale, T> quantizer(const T* in, F* out, group_scale s) {
  return {in, out, Scale(s)};
}

// Calls run(the kernel for a scale that is normal).
template <class F, class T, class Run>
OCTET_ROW_INLINE auto with_quantizer(const T* in, F* out, group_scale s, const Run& run) {
  if (is_moderate(s))
    return divides(s) ? run(quantizer<moderate_scale<F, true>>(in, out, s))
                      : run(quantizer<moderate_scale<F, false>>(in, out, s));
  if (is_large(s)) return run(quantizer<large_scale<F>>(in, out, s));
  return divides(s) ? run(quantizer<small_scale<F, true>>(in, out, s))
                    : run(quantizer<small_scale<F, false>>(in, out, s));
}

struct all_of_a_run {
  std::size_t n;
  bool streams;
  template <class Kernel>
  OCTET_ROW_INLINE void operator()(const Kernel& k) const {
    walk(k, n, streams);
  }
};

template <class F, class T>
OCTET_ROW void quantize(const T* in, F* out, std::size_t n, group_scale s, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (is_normal(s)) return with_quantizer(in, out, s, all_of_a_run{n, streams});
  }
  scalar::quantize(in, out, n, s, streams);
}

// Quantizes values from i on and takes the largest magnitude of as many of `next`: with Streams past the cache, which
// takes longer than the care; else quickly. Returns where care is needed, or where less than a step is left.
template <bool Streams, class Kernel, class T>
OCTET_ROW_LOOP std::size_t run_and_amax(const Kernel& k, std::size_t i, std::size_t n, const T* next,
                                        largest_of<T>& found) {
  constexpr std::size_t four = 4 * largest_of<T>::lanes;
  largest_of<T> largest = found;
  for (; n - i >= four; i += four) {
    if constexpr (Streams)
      largest.add_four_ahead(next + i);
    else
      largest.add_four(next + i);
    bool good = true;
    for (std::size_t part = i; part < i + four; part += 64) {
      if constexpr (Streams)
        k.template careful<true>(part, span64(64));
      else
        good = k.quick(part) && good;
    }
    if (!good) break;
  }
  if constexpr (Streams) _mm_sfence();
  found = largest;
  return i;
}

template <class Kernel, class T>
OCTET_ROW_INLINE exact::bits_of<T> walk_and_amax(const Kernel& k, std::size_t n, const T* next, std::size_t next_n,
                                                 bool streams) {
  const std::size_t both = n < next_n ? n : next_n;
  largest_of<T> largest;
  std::size_t i = 0;
  // Stores past the cache end with a fence, which short runs are not worth.
  if (streams && both >= 1024 && reinterpret_cast<std::uintptr_t>(k.out) % 64 == 0)
    i = run_and_amax<true>(k, 0, both, next, largest);
  for (std::size_t end = 0; both - i >= 4 * largest.lanes; i = end) {
    i = run_and_amax<false>(k, i, both, next, largest);
    end = both - i < careful_for ? both : i + careful_for;
    careful_run(k, i, end);
    largest.add_run(next + i, end - i);
  }
  walk_from(k, i, n);
  largest.add_run(next + i, next_n - i);
  return largest.value();
}

template <class T>
struct a_run_and_the_next {
  std::size_t n;
  const T* next;
  std::size_t next_n;
  bool streams;
  template <class Kernel>
  OCTET_ROW_INLINE exact::bits_of<T> operator()(const Kernel& k) const {
    return walk_and_amax(k, n, next, next_n, streams);
  }
};

template <class F, class T>
OCTET_ROW exact::bits_of<T> quantize_and_amax(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                              std::size_t next_n, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (is_normal(s)) return with_quantizer(in, out, s, a_run_and_the_next<T>{n, next, next_n, streams});
  }
  scalar::quantize(in, out, n, s, streams);
  return avx512::amax(next, next_n, streams);
}

// 16 values, each by a scale of its own.
template <class F, bool Divides>
OCTET_ROW_INLINE rounded16 scaled_each16(__m512 x, __m512 d, __m512 r) {
  return round16<F>(moderate_scale<F, Divides>(d, r)(x));
}
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_each_all(const T* in, F* out, std::size_t n, group_scales scales) {
  for (std::size_t i = 0; i < n; i += 64) {
    const span64 s(n - i);
    const floats64 d = load64(as_floats(scales.stored + i), s);
    const floats64 r = load64(reinterpret_cast<const float*>(scales.multipliers + i), s);
    if (within64(d, moderate, s) && within64(r, moderate, s)) {
      const floats64 x = load64(in + i, s);
      __m512i codes = merge64<F>(scaled_each16<F, Divides>(x.at[0], d.at[0], r.at[0]),
                                 scaled_each16<F, Divides>(x.at[1], d.at[1], r.at[1]),
                                 scaled_each16<F, Divides>(x.at[2], d.at[2], r.at[2]),
                                 scaled_each16<F, Divides>(x.at[3], d.at[3], r.at[3]), of_runs);
      if (has_nan(x)) codes = with_nan<F>(codes, x);
      _mm512_mask_storeu_epi8(out + i, s.lanes, codes);
    } else {
      scalar::quantize_each(in + i, out + i, n - i < 64 ? n - i : 64,
                            {scales.stored + i, scales.multipliers + i, scales.divides});
    }
  }
}

template <class F, class T>
OCTET_ROW void quantize_each(const T* in, F* out, std::size_t n, group_scales s) {
  if constexpr (!is_vector_source<T> || !is_moderate_format<F>)
    scalar::quantize_each(in, out, n, s);
  else if (s.divides)
    quantize_each_all<F, true>(in, out, n, s);
  else
    quantize_each_all<F, false>(in, out, n, s);
}

// Runs of 16, 32, 64 ... values, each by a scale of its own: 16 values have one.
template <class F, bool Divides>
OCTET_ROW_INLINE rounded16 scaled_run16(__m512 x, group_scales scales, std::size_t run) {
  return scaled_each16<F, Divides>(x, _mm512_set1_ps(scales.stored[run].value()),
                                   _mm512_set1_ps(scales.multipliers[run].value()));
}
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_runs_all(const T* in, F* out, std::size_t width, std::size_t count, group_scales s) {
  const int shift = __builtin_ctzll(width);
  const std::size_t n = width * count, last = count - 1;
  for (std::size_t i = 0; i < n; i += 64) {
    const span64 span(n - i);
    const floats64 x = load64(in + i, span);
    __m512i codes = merge64<F>(scaled_run16<F, Divides>(x.at[0], s, i >> shift),
                               scaled_run16<F, Divides>(x.at[1], s, least((i + 16) >> shift, last)),
                               scaled_run16<F, Divides>(x.at[2], s, least((i + 32) >> shift, last)),
                               scaled_run16<F, Divides>(x.at[3], s, least((i + 48) >> shift, last)), of_runs);
    if (has_nan(x)) codes = with_nan<F>(codes, x);
    _mm512_mask_storeu_epi8(out + i, span.lanes, codes);
  }
}

// Whether all of the scales are moderate.
OCTET_ROW_INLINE bool all_moderate(group_scales s, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 64) {
    const span64 span(count - i);
    if (!within64(load64(as_floats(s.stored + i), span), moderate, span) ||
        !within64(load64(reinterpret_cast<const float*>(s.multipliers + i), span), moderate, span))
      return false;
  }
  return true;
}

template <class F, class T>
OCTET_ROW void quantize_runs(const T* in, F* out, std::size_t width, std::size_t count, group_scales s, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (all_moderate(s, count))
      return s.divides ? quantize_runs_all<F, true>(in, out, width, count, s)
                       : quantize_runs_all<F, false>(in, out, width, count, s);
  }
  for (std::size_t i = 0; i < count; ++i, in += width, out += width)
    avx512::quantize(in, out, width, {s.stored[i], s.multipliers[i], s.divides}, streams);
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
