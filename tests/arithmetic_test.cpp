// Arithmetic on fp8: every pair of codes against exact double arithmetic and the oracle's rounding.
// SPDX-License-Identifier: MIT
#include "octet/arithmetic.hpp"

#include <cmath>

#include "catch.hpp"
#include "formats.hpp"

namespace {

// The oracle's code of a result that was computed exactly in double, or rounded to float where that is what is
// promised.
template <class F>
bool same(const oracle::table& format, F got, double wanted) {
  if (std::isnan(wanted)) return !F::has_nan || isnan(got);
  return got.bits() == format.encode(static_cast<float>(wanted), oracle::mode::nearest_even, true);
}

}  // namespace

static_assert((octet::e4m3(1.5) + octet::e4m3(2)).bits() == octet::e4m3(3.5).bits(), "a constant expression");

TEST_CASE("Sums, differences, products and quotients of all pairs are the float's, rounded once") {
  for_each_format([](auto tag, const oracle::table& format) {
    using F = typename decltype(tag)::type;
    if constexpr (F::is_signed) {
      tally results;
      for (unsigned i = 0; i < format.codes; ++i)
        for (unsigned j = 0; j < format.codes; ++j) {
          const F a = F::from_bits(static_cast<std::uint8_t>(i)), b = F::from_bits(static_cast<std::uint8_t>(j));
          const double x = format.all[i], y = format.all[j];
          const auto report = [&] { return difference("pair", i << 8 | j, (a + b).bits(), 0); };
          results.expect(same(format, a + b, x + y), report);
          results.expect(same(format, a - b, x - y), report);
          results.expect(same(format, a * b, x * y), report);
          results.expect(same(format, a / b, static_cast<double>(static_cast<float>(x) / static_cast<float>(y))),
                         report);
        }
      CAPTURE(format.codes, results.first);
      CHECK(results.differences == 0);
    }
  });
}

TEST_CASE("Compound assignment is the operation and the assignment") {
  octet::e4m3 x(2);
  x += octet::e4m3(1);
  x *= octet::e4m3(4);
  x -= octet::e4m3(2);
  x /= octet::e4m3(5);
  CHECK(octet::decode(x) == 2);
}

TEST_CASE("NaN is the format's NaN after every operation") {
  const octet::e4m3 nan = octet::e4m3::from_bits(0xFF), zero(0);
  for (const octet::e4m3 x : {nan + zero, zero - nan, nan * zero, zero / nan}) CHECK(x.bits() == 0x7F);
}

TEST_CASE("fma rounds once") {
  // 17 * 17 = 289 lies above the tie 288 + ..., and 288 alone would be the product rounded first.
  tally results;
  const oracle::table& format = oracle::of(0);
  for (unsigned i = 0; i < 256; i += 3)
    for (unsigned j = 1; j < 256; j += 5)
      for (unsigned k = 2; k < 256; k += 7) {
        const auto code = [](unsigned c) { return octet::e4m3::from_bits(static_cast<std::uint8_t>(c)); };
        const double exact = format.all[i] * format.all[j] + format.all[k];
        const unsigned got = fma(code(i), code(j), code(k)).bits();
        const bool right =
            std::isnan(exact) ? (got & 0x7F) == 0x7F : got == format.encode(exact, oracle::mode::nearest_even, true);
        results.expect(right, [&] { return difference("fma", i << 16 | j << 8 | k, got, 0); });
      }
  CAPTURE(results.first);
  CHECK(results.differences == 0);
}

TEST_CASE("Functions are those of float, rounded once") {
  const octet::e4m3 nine(9), x(-2.5);
  CHECK(octet::decode(sqrt(nine)) == 3);
  CHECK(exp(octet::e4m3(1)).bits() == octet::e4m3(std::exp(1.0f)).bits());
  CHECK(log(nine).bits() == octet::e4m3(std::log(9.0f)).bits());
  CHECK(tanh(x).bits() == octet::e4m3(std::tanh(-2.5f)).bits());
  CHECK(octet::decode(floor(x)) == -3);
  CHECK(octet::decode(ceil(x)) == -2);
  CHECK(octet::decode(trunc(x)) == -2);
}

TEST_CASE("fmin and fmax return the other value where one is NaN") {
  const octet::e4m3 nan = octet::e4m3::from_bits(0x7F), one(1), two(2);
  CHECK(fmin(nan, one) == one);
  CHECK(fmin(one, nan) == one);
  CHECK(fmax(nan, one) == one);
  CHECK(fmax(one, nan) == one);
  CHECK(fmin(one, two) == one);
  const octet::e4m3 zero(0.0), minus_zero(-0.0);
  for (const auto& least : {fmin(zero, minus_zero), fmin(minus_zero, zero)}) CHECK(least.bits() == 0x80);
  for (const auto& most : {fmax(zero, minus_zero), fmax(minus_zero, zero)}) CHECK(most.bits() == 0x00);
  CHECK(fmax(one, two) == two);
}
