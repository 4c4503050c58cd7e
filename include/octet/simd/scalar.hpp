// The row every machine has: plain C++ whose loops have no branches, so that compilers vectorise them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstring>

#include "../convert.hpp"
#include "kernels.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace scalar {

// -- One element ----------------------------------------------------------------------------------------------------

// Whether float additions round to nearest even at this moment, asked of the machine itself.
OCTET_LOCAL bool rounds_to_nearest() {
  const volatile float one = 1, quarter_ulp = 0x1p-25f, eighth_ulp_below = 0x1p-26f;
  const volatile float up = one + quarter_ulp, down = one - eighth_ulp_below;
  return up == one && down == one;
}

// Selections by masks: written as conditions, g++ turns them into branches, which random data mispredicts.
OCTET_HOST_INLINE constexpr std::int32_t all_ones_if_negative(std::int32_t x) { return x >> 31; }
OCTET_HOST_INLINE constexpr std::int32_t positive_part(std::int32_t x) { return x & ~all_ones_if_negative(x); }
OCTET_HOST_INLINE constexpr std::int32_t choose(std::int32_t mask, std::int32_t yes, std::int32_t no) {
  return (yes & mask) | (no & ~mask);
}

// The code of a float to nearest even, by one float addition that must round to nearest even.
//
// Let 2^e be the power of two at or below |x|, but at least the format's least normal value; the format's spacing at x
// is 2^(e - M), M its mantissa bits. Adding A = 2^(e + 23 - M) to |x| < 2^(e+1) gives a float below 2 A (M < 22), in
// the binade of A, whose spacing is just 2^(e - M): the addition does the rounding, and the difference of the two bit
// patterns is r = |x| / spacing rounded to an integer. A has an even last bit, so ties go to even r. The code is r plus
// 2^M for every binade that e lies above the least one (see exact::round_magnitude). A subnormal x is far below half a
// unit: if a flush-to-zero mode takes it for 0, r is 0 all the same. `too_large`: the bits of the least magnitude that
// does not saturate (overflow_limit).
template <class F>
OCTET_HOST_INLINE std::uint32_t nearest_code(std::uint32_t bits, std::int32_t too_large) {
  using S = float_traits<float>;
  using word =
      std::int32_t;  // every number here is below 2^31, and machines without unsigned vector compares have signed ones
  constexpr int up = S::mantissa_bits - F::mantissa_bits;
  constexpr word least = (F::least_exponent + S::bias) << S::mantissa_bits;
  constexpr word largest = static_cast<word>(detail::decode_bits(F::from_bits(F::max_code)));
  constexpr word infinity = static_cast<word>(S::infinity);
  constexpr word beyond = F::has_infinity ? F::infinity_code : F::nan_code, nan = F::nan_code;
  const word a = static_cast<word>(bits & (S::sign_mask - 1));
  const word sign = static_cast<word>((bits & S::sign_mask) >> (32 - F::width));
  const word clamped = a - positive_part(a - largest);
  const word m = (least + positive_part(clamped - least)) & infinity;
  const word addend = m + (up << S::mantissa_bits);
  const word sum = bit_cast<word>(bit_cast<float>(clamped) + bit_cast<float>(addend));
  word code = sum - addend + ((m - least) >> up);
  code |= F::has_negative_zero ? sign : sign & all_ones_if_negative(-code);
  code = choose(all_ones_if_negative(too_large - 1 - a), beyond | sign, code);
  code = choose(all_ones_if_negative(infinity - a), nan, code);
  return static_cast<std::uint32_t>(code);
}

template <class F>
OCTET_HOST_INLINE std::int32_t overflow_limit(overflow o) {
  return static_cast<std::int32_t>(o == overflow::saturate ? float_traits<float>::sign_mask - 1
                                                           : detail::overflow_bits<F>());
}

// A compiler's vectoriser sees words in memory where it would not see a class.
template <class T>
OCTET_HOST_INLINE exact::bits_of<T> load_bits(const T* x) {
  exact::bits_of<T> bits;
  std::memcpy(&bits, x, sizeof bits);
  return bits;
}
template <class F>
OCTET_HOST_INLINE std::uint8_t* code_bytes(F* codes) {
  return reinterpret_cast<std::uint8_t*>(codes);
}

// A value by its bits as a float; exact.
template <class T>
OCTET_HOST_INLINE std::uint32_t load_float(const T* x) {
  if constexpr (std::is_same_v<T, float>)
    return load_bits(x);
  else
    return exact::widen_bits<float, T>(load_bits(x));
}

// The number that values are multiplied by on the way in: rounding x * factor gives the float that group_scale names
// (exact::wide_quotient has the proof for a division).
OCTET_HOST_INLINE double factor_of(group_scale s) {
  return s.divides ? 1.0 / exact::widen(s.stored.value()) : exact::widen(s.multiplier.value());
}

// The bits of the float nearest to x * factor, or one that encodes alike: below 2^-126 every float has the code of zero
// (fp8 asserts it), and beyond the largest float every one saturates, whether the conversion gives infinity or not. The
// magnitude is widened by hand where it is subnormal, the product is rounded to 24 bits on its bits, and the conversion
// back is then exact, so no control register has a say. NaN and infinity stay what they are.
OCTET_HOST_INLINE std::uint32_t scaled_bits(std::uint32_t x, double factor) {
  using S = float_traits<float>;
  constexpr int dropped = float_traits<double>::mantissa_bits - S::mantissa_bits;
  constexpr std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint32_t a = x & (S::sign_mask - 1);
  const std::uint64_t subnormal = bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int32_t>(a)) * 0x1p-149);
  const std::uint64_t normal = bit_cast<std::uint64_t>(static_cast<double>(bit_cast<float>(a)));
  const std::uint64_t is_normal = std::uint64_t{0} - static_cast<std::uint64_t>(a >= 0x00800000u);
  const double wide = bit_cast<double>((normal & is_normal) | (subnormal & ~is_normal));
  const std::uint64_t product = bit_cast<std::uint64_t>(wide * factor);
  const std::uint64_t rounded = (product + half - 1 + ((product >> dropped) & 1)) & ~(2 * half - 1);
  return (x & S::sign_mask) | bit_cast<std::uint32_t>(static_cast<float>(bit_cast<double>(rounded)));
}

// Every value of a format, by its code.
template <class F, class T>
struct decode_table {
  T values[256];
  OCTET_HOST_INLINE constexpr decode_table() : values() {
    for (unsigned code = 0; code < 256; ++code)
      values[code] = octet::decode<T>(F::from_bits(static_cast<std::uint8_t>(code)));
  }
};
template <class F, class T>
static constexpr decode_table<F, T> values_of{};

// -- Conversion -------------------------------------------------------------------------------------------------------

// Codes of the n floats whose bits value(i) gives: quickly where additions round to nearest even.
template <class F, class Value>
OCTET_HOST_INLINE void encode_values(const Value& value, F* OCTET_RESTRICT out, std::size_t n, overflow o) {
  if (rounds_to_nearest()) {
    const std::int32_t too_large = overflow_limit<F>(o);
    for (std::size_t i = 0; i < n; ++i)
      code_bytes(out)[i] = static_cast<std::uint8_t>(nearest_code<F>(value(i), too_large));
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] = octet::encode<F>(bit_cast<float>(value(i)), o);
  }
}

template <class T>
struct plain_values {
  const T* OCTET_RESTRICT in;
  OCTET_HOST_INLINE std::uint32_t operator()(std::size_t i) const { return load_float(in + i); }
};

template <class F, class T>
OCTET_LOCAL void encode(const T* OCTET_RESTRICT in, F* OCTET_RESTRICT out, std::size_t n, overflow o, bool) {
  if constexpr (F::is_signed && !std::is_same_v<T, double>) {
    encode_values(plain_values<T>{in}, out, n, o);
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] = octet::encode<F>(in[i], o);
  }
}

template <class F, class T>
OCTET_LOCAL void decode(const F* OCTET_RESTRICT in, T* OCTET_RESTRICT out, std::size_t n, bool) {
  for (std::size_t i = 0; i < n; ++i) out[i] = values_of<F, T>.values[in[i].bits()];
}

// -- Reduction ------------------------------------------------------------------------------------------------------

template <class T>
OCTET_LOCAL exact::bits_of<T> amax(const T* in, std::size_t n, bool) {
  using bits = exact::bits_of<T>;
  bits largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bits a = load_bits(in + i) & static_cast<bits>(float_traits<T>::sign_mask - 1);
    largest = a > largest ? a : largest;
  }
  return largest;
}

template <class T>
OCTET_LOCAL exact::bits_of<T> finite_amax(const T* in, std::size_t n, std::size_t& not_finite) {
  using bits = exact::bits_of<T>;
  bits largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bits a = load_bits(in + i) & static_cast<bits>(float_traits<T>::sign_mask - 1);
    not_finite += a >= float_traits<T>::infinity;
    largest = a > largest && a < float_traits<T>::infinity ? a : largest;
  }
  return largest;
}

template <class T>
OCTET_LOCAL void amax_each(const T* OCTET_RESTRICT in, exact::bits_of<T>* OCTET_RESTRICT largest, std::size_t n) {
  using bits = exact::bits_of<T>;
  for (std::size_t i = 0; i < n; ++i) {
    const bits a = load_bits(in + i) & static_cast<bits>(float_traits<T>::sign_mask - 1);
    largest[i] = a > largest[i] ? a : largest[i];
  }
}

template <class T>
OCTET_LOCAL void amax_runs(const T* in, std::size_t width, std::size_t count, exact::bits_of<T>* largest,
                           bool streams) {
  for (std::size_t i = 0; i < count; ++i) largest[i] = scalar::amax(in + i * width, width, streams);
}

// -- Scaled conversion ------------------------------------------------------------------------------------------------

template <class F>
OCTET_LOCAL void scales_of(const float* amax, std::size_t n, const scale_rule& rule, descale* stored,
                           scale* multipliers) {
  for (std::size_t i = 0; i < n; ++i) {
    const group_scale s = octet::scale_of<F>(amax[i], rule);
    stored[i] = s.stored;
    multipliers[i] = s.multiplier;
  }
}

template <class T>
struct scaled_values {
  const T* OCTET_RESTRICT in;
  double factor;
  OCTET_HOST_INLINE std::uint32_t operator()(std::size_t i) const { return scaled_bits(load_float(in + i), factor); }
};
template <class T>
struct values_scaled_each {
  const T* OCTET_RESTRICT in;
  const double* OCTET_RESTRICT factors;
  OCTET_HOST_INLINE std::uint32_t operator()(std::size_t i) const {
    return scaled_bits(load_float(in + i), factors[i]);
  }
};

template <class F, class T>
OCTET_LOCAL void quantize(const T* in, F* out, std::size_t n, group_scale s, bool) {
  encode_values(scaled_values<T>{in, factor_of(s)}, out, n, overflow::saturate);
}

template <class F, class T>
OCTET_LOCAL exact::bits_of<T> quantize_and_amax(const T* in, F* out, std::size_t n, group_scale s, const T* next,
                                                std::size_t next_n, bool streams) {
  scalar::quantize(in, out, n, s, streams);
  return scalar::amax(next, next_n, streams);
}

template <class F, class T>
OCTET_LOCAL void quantize_each(const T* in, F* out, std::size_t n, group_scales s) {
  constexpr std::size_t at_once = 64;
  double factors[at_once];
  for (std::size_t i = 0; i < n; i += at_once) {
    const std::size_t count = n - i < at_once ? n - i : at_once;
    for (std::size_t k = 0; k < count; ++k) factors[k] = factor_of({s.stored[i + k], s.multipliers[i + k], s.divides});
    encode_values(values_scaled_each<T>{in + i, factors}, out + i, count, overflow::saturate);
  }
}

template <class F, class T>
OCTET_LOCAL void quantize_runs(const T* in, F* out, std::size_t width, std::size_t count, group_scales s,
                               bool streams) {
  for (std::size_t i = 0; i < count; ++i, in += width, out += width)
    scalar::quantize(in, out, width, {s.stored[i], s.multipliers[i], s.divides}, streams);
}

template <class F, class T>
OCTET_LOCAL void dequantize(const F* OCTET_RESTRICT in, T* OCTET_RESTRICT out, std::size_t n, descale d, bool) {
  const double wide = exact::widen(d.value());
  for (std::size_t i = 0; i < n; ++i) out[i] = exact::narrow<T>(values_of<F, double>.values[in[i].bits()] * wide);
}

template <class F, class T>
OCTET_LOCAL void dequantize_each(const F* OCTET_RESTRICT in, T* OCTET_RESTRICT out, std::size_t n,
                                 const descale* OCTET_RESTRICT d) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] = exact::narrow<T>(values_of<F, double>.values[in[i].bits()] * exact::widen(d[i].value()));
}

// The square of 26 bits is exact in double, so a compiler that contracts it with the addition that follows changes
// nothing. The difference of a float and its decoded code has more bits only where it was clipped far.
OCTET_HOST_INLINE double to_26_bits(double x) {
  return bit_cast<double>(bit_cast<std::uint64_t>(x) & ~((std::uint64_t{1} << 27) - 1));
}

template <class F, class T>
OCTET_LOCAL void measure(const T* in, const F* codes, std::size_t n, std::size_t first, group_scale s,
                         row_losses& sums) {
  using S = float_traits<float>;
  const double factor = factor_of(s);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t x = load_float(in + i), a = x & (S::sign_mask - 1);
    const std::uint32_t decoded = bit_cast<std::uint32_t>(exact::product(octet::decode(codes[i]), s.stored.value()));
    const bool finite = a < S::infinity;
    const bool compared = finite && (decoded & S::infinity) != S::infinity;
    sums.not_finite += !finite;
    const std::uint32_t scaled = scaled_bits(a, factor) & (S::sign_mask - 1);
    sums.clipped += finite && scaled >= detail::overflow_bits<F>() && scaled <= S::infinity;
    sums.flushed += a != 0 && codes[i].magnitude() == 0 && !isnan(codes[i]);
    sums.poisoned += finite && !compared;
    if (!compared || a == 0) continue;
    const double value = exact::widen(bit_cast<float>(x));
    const double off = to_26_bits(exact::widen(bit_cast<float>(decoded)) - value);
    const std::size_t lane = (first + i) % 8;
    sums.compared += 1;
    sums.signal[lane] += value * value;
    sums.error[lane] += off * off;
    sums.relative[lane] += (off < 0 ? -off : off) / (value < 0 ? -value : value);
  }
}

// -- Products -------------------------------------------------------------------------------------------------------

// Eight partial sums: element i goes to number i % 8.
struct sums8 {
  float at[8];
  OCTET_HOST_INLINE constexpr sums8() : at() {}
  OCTET_HOST_INLINE void add(const float* OCTET_RESTRICT values, const float* OCTET_RESTRICT x, std::size_t n) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
      for (std::size_t k = 0; k < 8; ++k) at[k] += values[i + k] * x[i + k];
    for (std::size_t k = 0; k < n - i; ++k) at[k] += values[i + k] * x[i + k];
  }
  OCTET_HOST_INLINE float total() const {
    return ((at[0] + at[4]) + (at[1] + at[5])) + ((at[2] + at[6]) + (at[3] + at[7]));
  }
};

template <class T>
OCTET_LOCAL void arrange(const T* x, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = bit_cast<float>(load_float(x + i));
  for (std::size_t i = n; i < padded(n); ++i) out[i] = 0;
}

// The codes are decoded in runs that stay in the cache, once for all columns.
inline constexpr std::size_t decoded_at_once = 256;

template <class F>
OCTET_LOCAL void multiply(const weights<F>& w, const activations& x, float* y, std::size_t y_stride, bool add) {
  float values[decoded_at_once];
  for (std::size_t r = 0; r < w.rows; ++r) {
    const F* codes = w.codes + r * w.stride;
    const descale* d = w.descales + w.tiles.rows.tile(r) * w.tiles_a_row;
    float totals[8] = {};
    const float* at = x.x;
    for (std::size_t tile = 0, c0 = 0, c1 = 0; c0 < w.cols; at += padded(c1 - c0), ++tile, c0 = c1) {
      c1 = w.tiles.cols.end(tile, w.cols);
      sums8 sums[8];
      for (std::size_t c = c0; c < c1; c += decoded_at_once) {
        const std::size_t n = c1 - c < decoded_at_once ? c1 - c : decoded_at_once;
        scalar::decode(codes + c, values, n, false);
        for (std::size_t m = 0; m < x.columns; ++m) sums[m].add(values, at + (c - c0) + m * x.stride, n);
      }
      for (std::size_t m = 0; m < x.columns; ++m) totals[m] += sums[m].total() * d[tile].value();
    }
    for (std::size_t m = 0; m < x.columns; ++m) {
      float& out = y[m * y_stride + r];
      out = add ? out + totals[m] : totals[m];
    }
  }
}

template <class F, class T>
OCTET_LOCAL float dot(const F* codes, const T* x, std::size_t n) {
  float values[decoded_at_once], wide[decoded_at_once];
  sums8 sums;
  for (std::size_t i = 0; i < n; i += decoded_at_once) {
    const std::size_t count = n - i < decoded_at_once ? n - i : decoded_at_once;
    scalar::decode(codes + i, values, count, false);
    for (std::size_t k = 0; k < count; ++k) wide[k] = bit_cast<float>(load_float(x + i + k));
    sums.add(values, wide, count);
  }
  return sums.total();
}

template <class F>
OCTET_LOCAL void axpy(float a, const F* OCTET_RESTRICT codes, float* OCTET_RESTRICT y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += a * values_of<F, float>.values[codes[i].bits()];
}

// -- The line-up ----------------------------------------------------------------------------------------------------

OCTET_LOCAL bool runs_here() { return true; }

struct row {
  static constexpr const char* name = "scalar";
  static constexpr bool (*runs_here)() = &scalar::runs_here;
  template <class F, class T>
  static constexpr conversion<F, T> converts = {&scalar::encode<F, T>, &scalar::decode<F, T>};
  template <class T>
  static constexpr reduction<T> reduces = {&scalar::amax<T>, &scalar::finite_amax<T>, &scalar::amax_each<T>,
                                           &scalar::amax_runs<T>};
  template <class F, class T>
  static constexpr scaled_conversion<F, T> scales = {&scalar::quantize<F, T>,        &scalar::quantize_and_amax<F, T>,
                                                     &scalar::quantize_each<F, T>,   &scalar::quantize_runs<F, T>,
                                                     &scalar::scales_of<F>,          &scalar::dequantize<F, T>,
                                                     &scalar::dequantize_each<F, T>, &scalar::measure<F, T>};
  template <class F, class T>
  static constexpr product<F, T> products = {&scalar::arrange<T>, &scalar::multiply<F>, &scalar::dot<F, T>,
                                             &scalar::axpy<F>};
};

}  // namespace scalar
}  // namespace simd
}  // namespace v0
}  // namespace octet
