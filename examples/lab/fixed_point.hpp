// Square root, 2^x and log2 on integers, exactly specified: every machine and compiler gets the same bits.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

namespace lab {

// A number written Qn here is an integer that counts units of 2^-n.

// The largest integer whose square is at most x, found bit by bit from the top.
constexpr std::uint64_t square_root(std::uint64_t x) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 62; bit != 0; bit >>= 2) {
    const std::uint64_t trial = root + bit;
    root >>= 1;
    if (x >= trial) {
      x -= trial;
      root += bit;
    }
  }
  return root;
}

// 2^1, 2^(1/2), 2^(1/4), ... in Q31: each the square root of the one before, to the nearest unit.
constexpr std::array<std::uint64_t, 32> roots_of_two() {
  std::array<std::uint64_t, 32> roots{};
  roots[0] = std::uint64_t{2} << 31;
  for (std::size_t k = 1; k < roots.size(); ++k) {
    const std::uint64_t square = roots[k - 1] << 31, root = square_root(square);
    roots[k] = root + (square - root * root > root ? 1 : 0);
  }
  return roots;
}

// 2^f in Q31, in [1, 2], for f in [0, 1) in Q31: the product of the roots whose bits are set in f. Within 20 units.
constexpr std::uint64_t exp2_fraction(std::uint32_t f) {
  constexpr std::array<std::uint64_t, 32> roots = roots_of_two();
  std::uint64_t product = std::uint64_t{1} << 31;
  for (std::size_t k = 1; k < roots.size(); ++k)
    if ((f >> (31 - k) & 1) != 0) product = (product * roots[k] + (std::uint64_t{1} << 30)) >> 31;
  return product;
}

// log2(m) in Q31, in [0, 1), for m in [1, 2) in Q31. Squaring m doubles its logarithm, so that the next bit of the
// logarithm comes up as the integer part. Within 8 units.
constexpr std::uint64_t log2_fraction(std::uint64_t m) {
  std::uint64_t logarithm = 0;
  for (int k = 0; k < 31; ++k) {
    m = m * m >> 31;
    const std::uint64_t bit = m >> 32;
    m >>= bit;
    logarithm = logarithm << 1 | bit;
  }
  return logarithm;
}

// 2^x as a double, for x in (-64, 64) in Q31. Multiplying by 2 and by 1/2 is exact.
constexpr double exp2(std::int64_t x) {
  const std::uint64_t shifted = static_cast<std::uint64_t>(x + (std::int64_t{64} << 31));
  double value = static_cast<double>(exp2_fraction(static_cast<std::uint32_t>(shifted & 0x7FFFFFFF))) / 2147483648.0;
  int exponent = static_cast<int>(shifted >> 31) - 64;
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value *= 0.5;
  return value;
}

static_assert(square_root(99) == 9 && square_root(100) == 10 && square_root(~std::uint64_t{0}) == 0xFFFFFFFF);
static_assert(exp2_fraction(0) == 0x80000000 && exp2_fraction(0x40000000) == 0xB504F334);  // 1 and sqrt(2)
static_assert(exp2(3ll << 31) == 8 && exp2(-(1ll << 31)) == 0.5);
static_assert(log2_fraction(0x80000000) == 0 && log2_fraction(0xC0000000) == 0x4AE00D1C);  // log2(1.5)

}  // namespace lab
