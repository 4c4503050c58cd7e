// The shape of a row: what every machine's row of kernels does, over contiguous runs that were checked by the caller.
// SPDX-License-Identifier: MIT
#pragma once

#include "../granularity.hpp"
#include "../scale.hpp"

namespace octet {
inline namespace v0 {
namespace simd {

// F: fp8. T: float, double or a 16-bit float. Runs of n values; input and output are apart; n may be 0. `streams`: the
// work this run is part of takes more than a quarter of the last-level cache (simd::streams), so its stores may go past
// the cache, and what is read only once is prefetched.

template <class F, class T>
struct conversion {
  void (*encode)(const T* in, F* out, std::size_t n, overflow o, bool streams);  // to nearest even (E8M0: up)
  void (*decode)(const F* in, T* out, std::size_t n, bool streams);
};

// The lengths of runs that are worked on many at a time.
OCTET_HOST_INLINE constexpr bool is_run_width(std::size_t n) { return n >= 16 && n <= 512 && (n & (n - 1)) == 0; }

// The bits of the largest magnitude, NaN and infinity included: as integers finite < infinity < NaN. 0 for n = 0.
template <class T>
struct reduction {
  exact::bits_of<T> (*amax)(const T* in, std::size_t n, bool streams);
  // Of the finite values alone; the others are counted, on top of what not_finite is.
  exact::bits_of<T> (*finite_amax)(const T* in, std::size_t n, std::size_t& not_finite);
  void (*amax_each)(const T* in, exact::bits_of<T>* amax, std::size_t n);  // amax[i] = max(amax[i], |in[i]|)
  // One amax for each of `count` neighbouring runs, `width` values long (is_run_width).
  void (*amax_runs)(const T* in, std::size_t width, std::size_t count, exact::bits_of<T>* amax, bool streams);
};

// One group_scale an element, or one a run, all of which divide or none.
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
  void (*quantize_runs)(const T* in, F* out, std::size_t width, std::size_t count, group_scales s, bool streams);
  // octet::scale_of each of n amaxes.
  void (*scales_of)(const float* amax, std::size_t n, const scale_rule& rule, descale* stored, scale* multipliers);
  void (*dequantize)(const F* in, T* out, std::size_t n, descale d, bool streams);
  void (*dequantize_each)(const F* in, T* out, std::size_t n, const descale* d);  // one an element
  // Adds elements first, first + 1, ... of a row.
  void (*measure)(const T* in, const F* codes, std::size_t n, std::size_t first, group_scale s, row_losses& sums);
};

// -- Products -------------------------------------------------------------------------------------------------------

// Activations are arranged for `multiply` in blocks of so many floats; the end of a tile is padded with zeros.
inline constexpr std::size_t product_block = 64;
OCTET_HOST_INLINE constexpr std::size_t padded(std::size_t n) {
  return (n + product_block - 1) / product_block * product_block;
}

// Codes [rows, cols], rows `stride` apart; the descale of element (r, c) is
// descales[tiles.rows.tile(r) * tiles_a_row + tiles.cols.tile(c)]. cols > 0.
template <class F>
struct weights {
  const F* codes;
  std::size_t rows, cols, stride;
  const descale* descales;
  std::size_t tiles_a_row;
  tiling tiles;
};

// The vectors [columns, ...] that weights are multiplied by, 1 to 8 of them, each 64-byte aligned and `stride` floats
// apart: the columns of each tile arranged, one tile after the other.
struct activations {
  const float* x;
  std::size_t stride, columns;
};

// Sums of products, in float; a NaN code makes its sum NaN.
template <class F, class T>
struct product {
  // out: padded(n) floats, the values of x in the order this row of kernels reads them, then zeros.
  void (*arrange)(const T* x, std::size_t n, float* out);
  // y[m * y_stride + r] = the sum over c of descale * code(r, c) * x[m][c], added to y where `add`.
  void (*multiply)(const weights<F>& w, const activations& x, float* y, std::size_t y_stride, bool add);
  float (*dot)(const F* codes, const T* x, std::size_t n);
  void (*axpy)(float a, const F* codes, float* y, std::size_t n);  // y += a * code
};

// Where memory is prefetched while rows of `cols` bytes, `stride` apart, are read in order, as offsets from the byte
// being read. Far, into the second cache: the same column some rows later, at least 16 KiB of reading. Near, into the
// first: the byte that is read 1 KiB later, in this row or in one of the next; that offset holds up to column
// until(col). Past the last row there is nothing in particular, which a prefetch may name.
struct read_ahead {
  std::size_t far, near_here, near_next, wraps, cols;
  OCTET_HOST_INLINE constexpr read_ahead(std::size_t width, std::size_t stride)
      : far((16384 + width - 1) / width * stride),
        near_here(1024 / width * stride + 1024 % width),
        near_next(near_here + stride - width),
        wraps(width - 1024 % width),
        cols(width) {}
  OCTET_HOST_INLINE constexpr std::size_t near(std::size_t col) const { return col < wraps ? near_here : near_next; }
  OCTET_HOST_INLINE constexpr std::size_t until(std::size_t col) const { return col < wraps ? wraps : cols; }
};

OCTET_HOST_INLINE constexpr std::size_t least(std::size_t a, std::size_t b) { return b < a ? b : a; }

// The address `offset` bytes after p, wherever that is.
OCTET_HOST_INLINE const char* somewhere(const void* p, std::size_t offset) {
  return reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(p) + offset);
}

// -- What the vector rows share -------------------------------------------------------------------------------------

// Elements for which a walk over values stays careful after some that need care.
inline constexpr std::size_t careful_for = 4096;

// How far ahead of a single stream of reads memory is prefetched, in bytes.
inline constexpr std::size_t stream_ahead = 1024;

// How work that streams goes along memory: by up to so many pages at once. Where more is read than written there are 8
// streams, since a single stream of reads leaves memory idle between its requests; a single stream of stores does not.
template <class Kernel>
struct pages {
  static constexpr std::size_t in_bytes = sizeof(*Kernel::in), out_bytes = sizeof(*Kernel::out);
  static constexpr std::size_t page = 4096 / (in_bytes > out_bytes ? in_bytes : out_bytes);  // elements
  // Elements of the next round, of which n are left.
  OCTET_HOST_INLINE static constexpr std::size_t round(std::size_t n) {
    constexpr std::size_t most = in_bytes > out_bytes ? 8 : 1;
    return n / page < most ? n / page * page : most * page;
  }
};

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
// Of the scales that are not moderate, those above it, not below.
OCTET_HOST_INLINE bool is_large(group_scale s) {
  return bit_cast<std::uint32_t>(s.stored.value()) >= bit_cast<std::uint32_t>(1.0f);
}
// Division by a power of two is multiplication.
OCTET_HOST_INLINE bool divides(group_scale s) {
  return s.divides && (bit_cast<std::uint32_t>(s.stored.value()) & 0x007FFFFF) != 0;
}
template <class F>
inline constexpr bool is_moderate_format = F::least_exponent - F::mantissa_bits > -29 &&
                                           (1 << F::exponent_bits) - F::bias < 40;

// Steps 4 to 6 of scale_rule for an amax that is a normal float, as numbers for vectors:
//   by ratio: amax * per_largest * power in doubles (exact::wide_quotient), between 2^-126 and 2^126, to the nearest
//   float; rounded up to a power of two where `up`.
//   by exponent: the exponent of amax's bits + added, + margin, as a field from 1 to 253.
template <class F>
struct descale_steps {
  double per_largest, power;
  std::int32_t added = 0, margin;
  bool by_ratio, up, known;  // known: the steps are these; other rules are seldom used for many small groups

  OCTET_HOST_INLINE explicit descale_steps(const scale_rule& rule)
      : per_largest(1.0 / exact::widen(bit_cast<std::uint32_t>(rule.largest) != 0
                                           ? rule.largest
                                           : octet::decode(F::from_bits(F::max_code)))),
        power(exact::power_of_two(rule.margin)),
        margin(rule.margin - ((F::max_code >> F::mantissa_bits) - F::bias)),
        by_ratio(rule.form == descale_form::float32 || rule.form == descale_form::e8m0_up),
        up(rule.form == descale_form::e8m0_up),
        known(up || (by_ratio && rule.on_the_way_in != scaling::scale_first)) {
    constexpr std::int32_t one = 1 << float_traits<float>::mantissa_bits;
    if (rule.form == descale_form::e8m0_ceil) added = one - 1;
    if (rule.form == descale_form::e8m0_even) added = one >> (F::mantissa_bits + 1);
    known = known || added != 0 || rule.form == descale_form::e8m0_floor;
  }
};

// The descales whose product with the least value of the format, 2^(least_exponent - mantissa_bits), is a normal float:
// then those with all others are normal too, or zero, infinite or NaN, and one multiplication rounds them.
template <class F>
inline constexpr float_range normal_descales = {
    static_cast<std::uint32_t>(1 - F::least_exponent + F::mantissa_bits) << 23, float_traits<float>::infinity};

}  // namespace simd
}  // namespace v0
}  // namespace octet
