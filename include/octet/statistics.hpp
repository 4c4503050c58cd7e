// What a quantization lost: counts and error sums that no choice of kernels and no split among threads changes.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scale.hpp"
#include "simd/kernels.hpp"

namespace octet {
inline namespace v0 {
namespace detail {

// A sum of non-negative doubles without rounding: one integer in units of 2^-352 with room up to 2^352. Addition is
// exact, so the order does not matter. The squares and quotients of floats lie within 2^-350 and 2^257.
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
    const int place = exponent_of(x) - D::mantissa_bits - lowest;
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
    return static_cast<double>(high | (more ? 1 : 0)) * power_of_two(place);
  }
};

}  // namespace detail

// Adding the statistics of the parts gives those of the whole, to the bit, in any order.
class statistics {
  detail::exact_sum signal_, error_, relative_;
  std::size_t compared_ = 0;

 public:
  std::size_t count = 0;       // all values
  std::size_t not_finite = 0;  // NaN and infinities in the input
  std::size_t clipped = 0;     // finite inputs that would have overflowed in nonfinite mode
  std::size_t flushed = 0;     // nonzero inputs whose code is a zero
  std::size_t lost = 0;        // finite inputs that decode to NaN or infinity (a group that a NaN poisoned)

  OCTET_HOST_INLINE statistics() {}

  // Over the inputs that are finite, not zero and not lost, with x' = float(code * descale):
  // mean of |x' - x| / |x|; 0 for no such input.
  OCTET_HOST_INLINE double mean_relative_error() const {
    return compared_ == 0 ? 0 : relative_.value() / static_cast<double>(compared_);
  }
  // 10 log10(sum x^2 / sum (x' - x)^2) in dB; infinite where there is no error.
  OCTET_HOST_INLINE double snr_db() const {
    const double error = error_.value();
    return error == 0 ? static_cast<double>(bit_cast<float>(float_traits<float>::infinity))
                      : 10 * std::log10(signal_.value() / error);
  }

  OCTET_HOST_INLINE statistics& operator+=(const statistics& part) {
    signal_.add(part.signal_);
    error_.add(part.error_);
    relative_.add(part.relative_);
    compared_ += part.compared_;
    count += part.count;
    not_finite += part.not_finite;
    clipped += part.clipped;
    flushed += part.flushed;
    lost += part.lost;
    return *this;
  }

  // One row of `cols` values.
  OCTET_HOST_INLINE void add_row(const simd::row_losses& row, std::size_t cols) {
    signal_.add(sum_of_lanes(row.signal));
    error_.add(sum_of_lanes(row.error));
    relative_.add(sum_of_lanes(row.relative));
    compared_ += row.compared;
    count += cols;
    not_finite += row.not_finite;
    clipped += row.clipped;
    flushed += row.flushed;
    lost += row.lost;
  }

 private:
  OCTET_HOST_INLINE static double sum_of_lanes(const double (&lane)[8]) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  }
};

}  // namespace v0
}  // namespace octet
