// Quantizing in the AVX2 row: by one scale, with the next run's largest magnitude meanwhile, or by one scale an element.
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
namespace avx2 {

template <class Scale, class F, class T>
OCTET_ROW_INLINE encoding<F, true, Scale, T> quantizer(const T* in, F* out, group_scale s) {
  return {in, out, Scale(s)};
}

template <class F, class T>
OCTET_ROW void quantize(const T* in, F* out, std::size_t n, group_scale s, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (n == 0) return;
    if (is_normal(s) && scalar::rounds_to_nearest()) {
      if (!is_moderate(s)) return walk(quantizer<any_scale<F>>(in, out, s), n, streams);
      if (divides(s)) return walk(quantizer<moderate_scale<F, true>>(in, out, s), n, streams);
      return walk(quantizer<moderate_scale<F, false>>(in, out, s), n, streams);
    }
  }
  scalar::quantize(in, out, n, s, streams);
}

// Quantizes values from i on and takes the largest magnitude of as many of `next`: with Streams past the cache, which
// takes longer than the care; else quickly. Returns where care is needed, or where less than a step is left.
template <bool Streams, class Kernel, class T>
OCTET_ROW_LOOP std::size_t run_and_amax(const Kernel& k, std::size_t i, std::size_t n, const T* next,
                                        largest_of<T>& found) {
  largest_of<T> largest = found;
  for (; n - i >= 64; i += 64) {
    for (std::size_t part = i; part < i + 64; part += 4 * largest.lanes) {
      if constexpr (Streams)
        largest.add_four_ahead(next + part);
      else
        largest.add_four(next + part);
    }
    if constexpr (Streams) {
      k.template careful<true>(i);
      k.template careful<true>(i + 32);
    } else if (!k.quick(i) || !k.quick(i + 32)) {
      break;
    }
  }
  if constexpr (Streams) _mm_sfence();
  found = largest;
  return i;
}

template <class Kernel, class T>
OCTET_ROW_INLINE exact::bits_of<T> walk_and_amax(const Kernel& k, std::size_t n, const T* next, std::size_t next_n,
                                                 bool streams) {
  const std::size_t both = (n < next_n ? n : next_n) / 64 * 64;
  largest_of<T> largest;
  std::size_t i = 0;
  // Stores past the cache end with a fence, which short runs are not worth.
  if (streams && both >= 1024 && reinterpret_cast<std::uintptr_t>(k.out) % 64 == 0)
    i = run_and_amax<true>(k, 0, both, next, largest);
  while (i < both) {
    i = run_and_amax<false>(k, i, both, next, largest);
    const std::size_t end = both - i < careful_for ? both : i + careful_for;
    careful_run(k, i, end);
    for (; i < end; i += 4 * largest.lanes) largest.add_four(next + i);
  }
  walk_from(k, i, n);
  return largest.with_run(next + i, next_n - i);
}

template <class F, class T>
OCTET_ROW exact::bits_of<T> quantize_and_amax(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                              std::size_t next_n, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (n != 0 && is_moderate(s) && scalar::rounds_to_nearest()) {
      if (divides(s)) return walk_and_amax(quantizer<moderate_scale<F, true>>(in, out, s), n, next, next_n, streams);
      return walk_and_amax(quantizer<moderate_scale<F, false>>(in, out, s), n, next, next_n, streams);
    }
  }
  avx2::quantize(in, out, n, s, streams);
  return avx2::amax(next, next_n, streams);
}

// 32 values, each by a moderate scale of its own.
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_each32(const T* in, F* out, const floats32& d, const floats32& r) {
  const words32 x = words_in_order(in), a = magnitudes32(x);
  const moderate_scale<F, Divides> s0(d.at[0], r.at[0]), s1(d.at[1], r.at[1]), s2(d.at[2], r.at[2]),
      s3(d.at[3], r.at[3]);
  const words32 scaled = {{s0(_mm256_min_epi32(a.at[0], s0.most())), s1(_mm256_min_epi32(a.at[1], s1.most())),
                           s2(_mm256_min_epi32(a.at[2], s2.most())), s3(_mm256_min_epi32(a.at[3], s3.most()))}};
  const __m256i code =
      _mm256_blendv_epi8(codes32<F, float>(scaled, pack_signs(x)), _mm256_set1_epi8(static_cast<char>(F::nan_code)),
                         above32<float>(a, _mm256_set1_epi32(infinity)));
  store(out, to_memory_order<float>(code));
}
// Whole blocks, and a last one that overlaps the one before.
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_each_all(const T* in, F* out, std::size_t n, group_scales s) {
  const float* stored = reinterpret_cast<const float*>(s.stored);
  const float* multipliers = reinterpret_cast<const float*>(s.multipliers);
  if (n < 32) return scalar::quantize_each(in, out, n, s);
  for (std::size_t i = 0;; i = i + 64 <= n ? i + 32 : n - 32) {
    const floats32 d = load_floats(stored + i), r = load_floats(multipliers + i);
    if (within32(d, moderate) && within32(r, moderate))
      quantize_each32<F, Divides>(in + i, out + i, d, r);
    else
      scalar::quantize_each(in + i, out + i, 32, {s.stored + i, s.multipliers + i, s.divides});
    if (i + 32 == n) return;
  }
}

template <class F, class T>
OCTET_ROW void quantize_each(const T* in, F* out, std::size_t n, group_scales s) {
  if constexpr (!is_vector_source<T> || !is_moderate_format<F>)
    scalar::quantize_each(in, out, n, s);
  else if (!scalar::rounds_to_nearest())
    scalar::quantize_each(in, out, n, s);
  else if (s.divides)
    quantize_each_all<F, true>(in, out, n, s);
  else
    quantize_each_all<F, false>(in, out, n, s);
}

// The scales of 32 values from number i on, of runs of 2^shift values.
OCTET_ROW_INLINE floats32 scales_of_runs(const float* scales, std::size_t i, int shift) {
  const __m256 low = _mm256_set1_ps(scales[i >> shift]), high = _mm256_set1_ps(scales[(i + 16) >> shift]);
  return {{low, low, high, high}};
}
template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize_runs_all(const T* in, F* out, std::size_t n, int shift, group_scales s) {
  const float* stored = reinterpret_cast<const float*>(s.stored);
  const float* multipliers = reinterpret_cast<const float*>(s.multipliers);
  for (std::size_t i = 0; i < n; i += 32)
    quantize_each32<F, Divides>(in + i, out + i, scales_of_runs(stored, i, shift),
                                scales_of_runs(multipliers, i, shift));
}

template <class F, class T>
OCTET_ROW void quantize_runs(const T* in, F* out, std::size_t width, std::size_t count, group_scales s, bool streams) {
  std::size_t done = 0;  // runs
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    bool all_moderate = scalar::rounds_to_nearest();
    for (std::size_t i = 0; i < count; ++i)
      all_moderate = all_moderate && is_moderate({s.stored[i], s.multipliers[i], s.divides});
    if (all_moderate) {
      done = width == 16 ? count - count % 2 : count;
      if (s.divides)
        quantize_runs_all<F, true>(in, out, done * width, __builtin_ctzll(width), s);
      else
        quantize_runs_all<F, false>(in, out, done * width, __builtin_ctzll(width), s);
    }
  }
  for (; done < count; ++done)
    avx2::quantize(in + done * width, out + done * width, width, {s.stored[done], s.multipliers[done], s.divides},
                   streams);
}

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
