// Random numbers of known distributions, drawn with integer arithmetic: the same on every machine and compiler.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fixed_point.hpp"
#include "octet/random.hpp"

namespace lab {

// Where numbers are drawn from: draw `i` of `stream` is Philox word i + 2^48 stream of the seed.
struct source {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  // below 65536
  std::uint32_t bits(std::uint64_t i) const { return octet::philox_bits(seed, (stream << 48) + i); }
};

// n values whose magnitudes are log-uniform over one octave, figure / sqrt(2) to figure * sqrt(2), with random signs.
inline std::vector<float> octave(source from, double figure, std::size_t n) {
  const double least = figure * (static_cast<double>(exp2_fraction(0x40000000)) / 4294967296.0);
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = from.bits(i);
    const double magnitude = least * (static_cast<double>(exp2_fraction(bits >> 1)) / 2147483648.0);
    values[i] = static_cast<float>((bits & 1) != 0 ? -magnitude : magnitude);
  }
  return values;
}

// One normal number of mean 0 and deviation 1 in Q28: Marsaglia's polar method. A point (u, v) uniform in the unit disc
// has a uniform direction, and s = u^2 + v^2 is uniform in (0, 1) and independent of it, so u / sqrt(s) * sqrt(-2 ln s)
// is normal. The points tried are draws 64 i, 64 i + 2, ...; all 32 lie outside the disc with probability 4e-22.
inline std::int64_t normal(source from, std::uint64_t i) {
  constexpr std::uint64_t two_ln_2 = 46516320;  // Q25
  for (std::uint64_t attempt = 0; attempt < 64; attempt += 2) {
    // Odd integers in (-2^31, 2^31): Q31, never 0.
    const auto coordinate = [&](std::uint64_t k) {
      return static_cast<std::int64_t>(from.bits(64 * i + attempt + k) | 1) - (std::int64_t{1} << 31);
    };
    const std::int64_t u = coordinate(0), v = coordinate(1);
    const std::uint64_t s = static_cast<std::uint64_t>(u * u) + static_cast<std::uint64_t>(v * v);  // Q62
    if (s >> 62 != 0) continue;
    int top = 61;
    while ((s >> top) == 0) --top;
    // -log2(s), Q31, at most 62: s is 2^(top - 62) times a number in [1, 2).
    const std::uint64_t one_to_two = top > 31 ? s >> (top - 31) : s << (31 - top);
    const std::uint64_t negative_log2 = (static_cast<std::uint64_t>(62 - top) << 31) - log2_fraction(one_to_two);
    const std::uint64_t radius = square_root(negative_log2 * two_ln_2);  // Q28, at most 9.3
    const std::int64_t direction = u * (std::int64_t{1} << 31) / static_cast<std::int64_t>(square_root(s));  // Q31
    return direction * static_cast<std::int64_t>(radius) / (std::int64_t{1} << 31);
  }
  return 0;
}

// n normal numbers in Q28.
inline std::vector<std::int64_t> normals(source from, std::size_t n) {
  std::vector<std::int64_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = normal(from, i);
  return values;
}

// e^x in Q44 for x in (-11, 11) in Q28, truncated.
constexpr std::uint64_t exp(std::int64_t x) {
  constexpr std::int64_t log2_e = 1549082005;                                                       // Q30
  const std::uint64_t shifted = static_cast<std::uint64_t>(x * log2_e + (std::int64_t{16} << 58));  // Q58, positive
  const std::uint64_t fraction = exp2_fraction(static_cast<std::uint32_t>(shifted >> 27 & 0x7FFFFFFF));
  const int up = static_cast<int>(shifted >> 58) - 16 + 44 - 31;
  return up >= 0 ? fraction << up : fraction >> -up;
}

// Softmax of each row of `keys` logits in Q28: e^x over the row's sum of e^x. The sum of up to 65536 is exact.
inline std::vector<float> softmax(const std::vector<std::int64_t>& logits, std::size_t keys) {
  std::vector<float> values(logits.size());
  for (std::size_t row = 0; row < logits.size(); row += keys) {
    std::uint64_t sum = 0;
    for (std::size_t i = row; i < row + keys; ++i) sum += exp(logits[i]);
    for (std::size_t i = row; i < row + keys; ++i)
      values[i] = static_cast<float>(static_cast<double>(exp(logits[i])) / static_cast<double>(sum));
  }
  return values;
}

// Numbers in Q28 as floats, each times `factor`.
inline std::vector<float> to_floats(const std::vector<std::int64_t>& numbers, double factor = 1) {
  std::vector<float> values(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    values[i] = static_cast<float>(static_cast<double>(numbers[i]) / 268435456.0 * factor);
  return values;
}

}  // namespace lab
