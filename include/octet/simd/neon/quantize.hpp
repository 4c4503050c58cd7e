// Quantizing in the NEON row: by one scale, or by one scale an element.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_AARCH64
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
namespace neon {

template <class F, bool Divides, class T>
OCTET_ROW_INLINE void quantize16(const T* in, F* out, const words16& d, const words16& r) {
  const source16 x = load_source16(in);
  const words16& a = x.magnitudes;
  const words16 scaled = {{scale4<Divides>(a.at[0], d.at[0], r.at[0]), scale4<Divides>(a.at[1], d.at[1], r.at[1]),
                           scale4<Divides>(a.at[2], d.at[2], r.at[2]), scale4<Divides>(a.at[3], d.at[3], r.at[3])}};
  store(out, codes16<F, true, T>(x, scaled));
}

template <class F, bool Divides, class T>
struct quantizing {
  const T* in;
  F* out;
  words16 d, r;

  OCTET_ROW_INLINE void block(std::size_t i) const { quantize16<F, Divides>(in + i, out + i, d, r); }
};

template <class F, class T>
OCTET_ROW void quantize(const T* in, F* out, std::size_t n, group_scale s, bool streams) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (n == 0) return;
    if (is_moderate(s) && is_ready()) {
      const words16 d = all16(s.stored.value()), r = all16(s.multiplier.value());
      if (divides(s)) return walk(quantizing<F, true, T>{in, out, d, r}, n);
      return walk(quantizing<F, false, T>{in, out, d, r}, n);
    }
  }
  scalar::quantize(in, out, n, s, streams);
}

template <class F, class T>
OCTET_ROW exact::bits_of<T> quantize_and_amax(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                              std::size_t next_n, bool streams) {
  neon::quantize(in, out, n, s, streams);
  return neon::amax(next, next_n, streams);
}

template <class F, class T>
OCTET_ROW void quantize_each(const T* in, F* out, std::size_t n, group_scales s) {
  if constexpr (is_vector_source<T> && is_moderate_format<F>) {
    if (n >= 16 && is_ready()) {
      for (std::size_t i = 0;; i = i + 32 <= n ? i + 16 : n - 16) {
        const words16 d = load_words16(s.stored + i), r = load_words16(s.multipliers + i);
        if (!are_moderate(d) || !are_moderate(r))
          scalar::quantize_each(in + i, out + i, 16, group_scales{s.stored + i, s.multipliers + i, s.divides});
        else if (s.divides)
          quantize16<F, true>(in + i, out + i, d, r);
        else
          quantize16<F, false>(in + i, out + i, d, r);
        if (i + 16 == n) return;
      }
    }
  }
  scalar::quantize_each(in, out, n, s);
}

template <class F, class T>
OCTET_ROW void quantize_runs(const T* in, F* out, std::size_t width, std::size_t count, group_scales s, bool streams) {
  for (std::size_t i = 0; i < count; ++i, in += width, out += width)
    neon::quantize(in, out, width, {s.stored[i], s.multipliers[i], s.divides}, streams);
}

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
