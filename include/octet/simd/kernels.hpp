// The shape of a row: what every machine's row of kernels does, over contiguous runs that were checked by the caller.
// SPDX-License-Identifier: MIT
#pragma once

#include "../scale.hpp"

namespace octet {
inline namespace v0 {
namespace simd {

// F: fp8. T: float, double or a 16-bit float. Runs of n values; input and output are apart; n may be 0. `streams`: the
// work this run is part of is larger than the last-level cache, so its stores may go past it.

template <class F, class T>
struct conversion {
  void (*encode)(const T* in, F* out, std::size_t n, overflow o, bool streams);  // to nearest even (E8M0: up)
  void (*decode)(const F* in, T* out, std::size_t n, bool streams);
};

// The bits of the largest magnitude, NaN and infinity included: as integers finite < infinity < NaN. 0 for n = 0.
template <class T>
struct reduction {
  exact::bits_of<T> (*amax)(const T* in, std::size_t n, bool streams);
  void (*amax_each)(const T* in, exact::bits_of<T>* amax, std::size_t n);  // amax[i] = max(amax[i], |in[i]|)
};

// One group_scale an element, all of which divide or none.
struct group_scales {
  const descale* stored;
  const scale* multipliers;
  bool divides;
};

// What a row of a matrix adds to the statistics. The sums run in 8 lanes, element number i of the row in lane i % 8.
struct row_losses {
  std::size_t not_finite = 0, clipped = 0, flushed = 0, poisoned = 0, compared = 0;
  double signal[8] = {}, error[8] = {}, relative[8] = {};
  OCTET_HOST_INLINE constexpr row_losses() {}
};

// T: float or a 16-bit float. The float nearest to x / stored or to x * multiplier (group_scale) is encoded to nearest
// even and saturates; code * descale is rounded once to T.
template <class F, class T>
struct scaled_conversion {
  void (*quantize)(const T* in, F* out, std::size_t n, group_scale s, bool streams);
  // The same, and meanwhile the amax of the run that is quantized next: so each run comes from memory once.
  exact::bits_of<T> (*quantize_and_amax)(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                         std::size_t next_n, bool streams);
  void (*quantize_each)(const T* in, F* out, std::size_t n, group_scales s);
  void (*dequantize)(const F* in, T* out, std::size_t n, descale d, bool streams);
  void (*dequantize_each)(const F* in, T* out, std::size_t n, const descale* d);  // one an element
  // Adds elements first, first + 1, ... of a row.
  void (*measure)(const T* in, const F* codes, std::size_t n, std::size_t first, group_scale s, row_losses& sums);
};

// -- What the vector rows share -------------------------------------------------------------------------------------

template <class T>
inline constexpr bool is_bfloat16 = sizeof(T) == 2 && float_traits<T>::mantissa_bits == 7;
template <class T>
inline constexpr bool is_float16 = sizeof(T) == 2 && float_traits<T>::mantissa_bits == 10;
template <class T>
inline constexpr bool is_vector_source = std::is_same_v<T, float> || is_bfloat16<T> || is_float16<T>;

// Positive floats, from one to before another, by their bits.
struct float_range {
  std::uint32_t first, end;
  OCTET_HOST_INLINE constexpr bool holds(float x) const { return bit_cast<std::uint32_t>(x) - first < end - first; }
};

// A scale from 2^-40 to 2^40, and a format far inside float's range: what the vectors quantize with. Magnitudes are
// brought above 2^-70 first: 2^-70 * 2^40 is below half a unit, so the codes stay the same; and every product, quotient
// and remainder on the way is then a normal float, as is a unit times 2^-40.
inline constexpr float_range moderate = {(127 - 40) << 23, (127 + 40) << 23};
OCTET_HOST_INLINE bool is_moderate(float x) { return moderate.holds(x); }
OCTET_HOST_INLINE bool is_moderate(group_scale s) {
  return is_moderate(s.stored.value()) && is_moderate(s.multiplier.value());
}
// A scale from 2^-126 to 2^126, as every descale that was found is.
OCTET_HOST_INLINE bool is_normal(group_scale s) {
  constexpr float_range range = {0x00800000, 0x7E800001};
  return range.holds(s.stored.value()) && range.holds(s.multiplier.value());
}
// Division by a power of two is multiplication.
OCTET_HOST_INLINE bool divides(group_scale s) {
  return s.divides && (bit_cast<std::uint32_t>(s.stored.value()) & 0x007FFFFF) != 0;
}
template <class F>
inline constexpr bool is_moderate_format = F::least_exponent - F::mantissa_bits > -29 &&
                                           (1 << F::exponent_bits) - F::bias < 40;

// The descales whose product with the least value of the format, 2^(least_exponent - mantissa_bits), is a normal float:
// then those with all others are normal too, or zero, infinite or NaN, and one multiplication rounds them.
template <class F>
inline constexpr float_range normal_descales = {
    static_cast<std::uint32_t>(1 - F::least_exponent + F::mantissa_bits) << 23, float_traits<float>::infinity};

}  // namespace simd
}  // namespace v0
}  // namespace octet
