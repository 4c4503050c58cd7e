// What a quantization lost: counts and error sums that no choice of kernels and no split among threads changes.
// SPDX-License-Identifier: MIT
#pragma once

#include <math.h>

#include "simd/kernels.hpp"

namespace octet {
inline namespace v0 {
namespace detail {

// A sum of non-negative doubles without rounding: one integer in units of 2^-352 with room up to 2^352. Addition is
// exact, so the order does not matter. What is summed are multiples of 2^-350 (squares of multiples of 2^-149,
// quotients above 2^-278, and sums of them in double) below 2^279 (a quotient of floats), at most 2^64 of them.
class exact_sum {
  static constexpr int words = 11, lowest = -352;
  std::uint64_t word_[words] = {};

  OCTET_HOST_INLINE void add_at(int i, std::uint64_t x) {
    for (; x != 0 && i < words; ++i) {
      word_[i] += x;
      x = word_[i] < x ? 1 : 0;
    }
  }

 public:
  OCTET_HOST_INLINE constexpr exact_sum() {}

  OCTET_HOST_INLINE void add(double x) {
    using D = float_traits<double>;
    const std::uint64_t bits = bit_cast<std::uint64_t>(x);
    if (bits == 0) return;
    const std::uint64_t significand = (bits & ((std::uint64_t{1} << D::mantissa_bits) - 1)) | std::uint64_t{1}
                                                                                                  << D::mantissa_bits;
    const int place = exact::exponent_of(x) - D::mantissa_bits - lowest;
    add_at(place / 64, significand << place % 64);
    if (place % 64 != 0) add_at(place / 64 + 1, significand >> (64 - place % 64));
  }

  OCTET_HOST_INLINE void add(const exact_sum& other) {
    for (int i = 0; i < words; ++i) add_at(i, other.word_[i]);
  }

  // Rounded to the nearest double.
  OCTET_HOST_INLINE double value() const {
    int top = words - 1;
    while (top > 0 && word_[top] == 0) --top;
    std::uint64_t high = word_[top], low = top > 0 ? word_[top - 1] : 0;
    if (high == 0) return 0;
    int place = 64 * top + lowest;
    for (; high >> 63 == 0; --place) {
      high = high << 1 | low >> 63;
      low <<= 1;
    }
    bool more = low != 0;
    for (int i = top - 2; i >= 0; --i) more = more || word_[i] != 0;
    return static_cast<double>(high | (more ? 1 : 0)) * exact::power_of_two(place);
  }
};

}  // namespace detail

// Adding the statistics of the parts gives those of the whole, to the bit, in any order (while the machine rounds to
// nearest even, as the sums within a row do).
class statistics {
  detail::exact_sum signal_, error_, relative_;

 public:
  std::size_t count = 0;       // all values
  std::size_t not_finite = 0;  // NaN and infinities in the input
  std::size_t clipped = 0;     // finite inputs that would have overflowed in nonfinite mode
  std::size_t flushed = 0;     // nonzero inputs whose code is a zero
  std::size_t poisoned = 0;    // finite inputs that decode to NaN or infinity: a NaN's group, or float's own overflow
  std::size_t compared = 0;    // inputs that are finite, not zero and not poisoned: what the errors are taken over

  OCTET_HOST_INLINE statistics() {}

  // With x' = float(code * descale), mean of |x' - x| / |x|; NaN if nothing was compared.
  [[nodiscard]] OCTET_HOST_INLINE double mean_relative_error() const {
    return compared == 0 ? not_a_number() : relative_.value() / static_cast<double>(compared);
  }
  // 10 log10(sum x^2 / sum (x' - x)^2) in dB; infinite where there is no error, NaN if nothing was compared.
  [[nodiscard]] OCTET_HOST_INLINE double snr_db() const {
    if (compared == 0) return not_a_number();
    const double error = error_.value();
    return error == 0 ? bit_cast<double>(float_traits<double>::infinity) : 10 * ::log10(signal_.value() / error);
  }

  OCTET_HOST_INLINE statistics& operator+=(const statistics& part) {
    signal_.add(part.signal_);
    error_.add(part.error_);
    relative_.add(part.relative_);
    compared += part.compared;
    count += part.count;
    not_finite += part.not_finite;
    clipped += part.clipped;
    flushed += part.flushed;
    poisoned += part.poisoned;
    return *this;
  }

  // One row of `cols` values, as a row of kernels measured it.
  OCTET_HOST_INLINE void add_row(const simd::row_losses& row, std::size_t cols) {
    signal_.add(sum_of_lanes(row.signal));
    error_.add(sum_of_lanes(row.error));
    relative_.add(sum_of_lanes(row.relative));
    compared += row.compared;
    count += cols;
    not_finite += row.not_finite;
    clipped += row.clipped;
    flushed += row.flushed;
    poisoned += row.poisoned;
  }

 private:
  OCTET_HOST_INLINE static double not_a_number() { return bit_cast<double>(float_traits<double>::sign_mask - 1); }
  OCTET_HOST_INLINE static double sum_of_lanes(const double (&lane)[8]) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  }
};

}  // namespace v0
}  // namespace octet
