// Arithmetic on bits: widening, narrowing, products and quotients against the machine's own and by definition.
// SPDX-License-Identifier: MIT
#include "octet/exact.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "catch.hpp"
#include "formats.hpp"
#include "octet/convert.hpp"
#include "oracle.hpp"

namespace {

using octet::bit_cast;
namespace exact = octet::exact;

std::uint32_t bits(float x) { return bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return bit_cast<std::uint64_t>(x); }

// Zeros, the least and largest of everything, infinity, NaN, and what lies next to them.
constexpr std::uint32_t corners[] = {0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x003FFFFF, 0x00400000, 0x00400001,
                                     0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x0D800000, 0x33800000,
                                     0x34000001, 0x3EAAAAAB, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FFFFFFF,
                                     0x40000000, 0x40400000, 0x4B7FFFFF, 0x4B800000, 0x5F800000, 0x7E7FFFFF, 0x7E800000,
                                     0x7EFFFFFF, 0x7F000000, 0x7F000001, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
                                     0x7FC00000, 0x7FFFFFFF};

// NaN is NaN; anything else to the bit.
bool same(float a, float b) { return std::isnan(b) ? std::isnan(a) : bits(a) == bits(b); }

// The machine must not keep more digits than float has, nor fuse.
float multiply(float a, float b) {
  const volatile float x = a, y = b;
  const volatile float result = x * y;
  return result;
}
float divide(float a, float b) {
  const volatile float x = a, y = b;
  const volatile float result = x / y;
  return result;
}

// Within one unit of the last place of a result below 2^-126, as quotient promises there.
bool next_to(float a, float b) {
  const std::uint32_t x = bits(a), y = bits(b);
  return (x ^ y) >> 31 == 0 && (x > y ? x - y : y - x) <= 1;
}

void expect_arithmetic(tally& t, std::uint32_t i, std::uint32_t j) {
  const float a = bit_cast<float>(i), b = bit_cast<float>(j);
  const float product = exact::product(a, b), quotient = exact::quotient(a, b);
  const auto shown = static_cast<unsigned long long>(i) << 32 | j;
  const float p = multiply(a, b), q = divide(a, b);
  t.expect(same(product, p), [&] { return difference("product", shown, bits(product), bits(p)); });
  const bool small = std::fabs(q) < 0x1p-126f;
  t.expect(small ? next_to(quotient, q) : same(quotient, q),
           [&] { return difference("quotient", shown, bits(quotient), bits(q)); });
}

double value_of_half(std::uint16_t h) {
  const int field = (h & 0x7C00) >> 10, mantissa = h & 0x3FF;
  const double sign = (h & 0x8000) != 0 ? -1 : 1;
  if (field == 31)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * std::ldexp(field == 0 ? mantissa : mantissa + 1024, (field == 0 ? 1 : field) - 25);
}

double value_of_bfloat16(std::uint16_t b) { return bit_cast<float>(static_cast<std::uint32_t>(b) << 16); }

}  // namespace

TEST_CASE("floats widen to double as the machine widens them") {
  tally t;
  const auto expect = [&t](std::uint32_t i) {
    const float x = bit_cast<float>(i);
    const double wide = exact::widen(x);
    if (std::isnan(x)) {  // sign and payload are kept
      const std::uint64_t wanted =
          std::uint64_t{i >> 31} << 63 | 0x7FF0000000000000u | std::uint64_t{i & 0x7FFFFFu} << 29;
      t.expect(exact::widen_bits<double, float>(i) == wanted, [&] { return difference("NaN", i, bits(wide), wanted); });
    } else {
      t.expect(bits(wide) == bits(static_cast<double>(x)), [&] { return difference("float", i, bits(wide), 0); });
    }
  };
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; i += 251) expect(static_cast<std::uint32_t>(i));
  for (std::uint32_t i = 0; i < 1u << 23; i += 7) expect(i);
  for (const std::uint32_t i : corners) expect(i), expect(i | 0x80000000u);
  INFO(t.first);
  CHECK(t.differences == 0);
  CHECK(t.compared > (1u << 24));
  CHECK(exact::widen(1.5) == 1.5);
}

TEST_CASE("every half and bfloat16 widens exactly, NaN with sign and payload") {
  tally t;
  for (unsigned i = 0; i < 65536; ++i) {
    const auto h = static_cast<std::uint16_t>(i);
    const std::uint32_t half = exact::widen_bits<float, octet::float16>(h);
    const std::uint64_t half_to_double = exact::widen_bits<double, octet::float16>(h);
    const std::uint32_t brain = exact::widen_bits<float, octet::bfloat16>(h);
    const std::uint64_t brain_to_double = exact::widen_bits<double, octet::bfloat16>(h);
    const double x = value_of_half(h), y = value_of_bfloat16(h);
    const std::uint32_t sign = (i & 0x8000) << 16;
    t.expect(half == (std::isnan(x) ? sign | 0x7F800000u | (i & 0x3FF) << 13 : bits(static_cast<float>(x))),
             [&] { return difference("half", i, half, 0); });
    t.expect(half_to_double == (std::isnan(x)
                                    ? std::uint64_t{sign} << 32 | 0x7FF0000000000000u | std::uint64_t{i & 0x3FF} << 42
                                    : bits(x)),
             [&] { return difference("half to double", i, half_to_double, 0); });
    t.expect(brain == i << 16, [&] { return difference("bfloat16", i, brain, i << 16); });
    t.expect(std::isnan(y) || brain_to_double == bits(y),
             [&] { return difference("bfloat16", i, brain_to_double, bits(y)); });
    t.expect(bits(static_cast<float>(octet::float16::from_bits(h))) == half || std::isnan(x),
             [&] { return difference("half as a class", i, 0, half); });
  }
  INFO(t.first);
  CHECK(t.differences == 0);
}

TEST_CASE("doubles narrow to float as the machine narrows them") {
  tally t;
  const auto expect = [&t](double x) {
    const float got = exact::narrow<float>(x);
    const volatile double exact_x = x;
    const volatile float wanted = static_cast<float>(exact_x);
    t.expect(std::isnan(x) ? bits(got) == 0x7FFFFFFF : bits(got) == bits(wanted),
             [&] { return difference("double", bits(x), bits(got), bits(wanted)); });
  };
  oracle::random random(29);
  for (int i = 0; i < 1 << 23; ++i) {
    const std::uint64_t any = random();
    expect(bit_cast<double>(any));
    // Around a float, a tie of floats, and their neighbours, subnormal floats too.
    const std::uint64_t exponent = 1023 - 152 + (any >> 40) % 282;
    const std::uint64_t near = exponent << 52 | (any << 24 >> 40) << 28;
    expect(bit_cast<double>(near + (any & 3) - 1));
  }
  for (const std::uint32_t i : corners) {
    for (const double sign : {1.0, -1.0}) {
      const double x = sign * static_cast<double>(bit_cast<float>(i));
      expect(x);
      if (std::isnan(x)) continue;
      expect(std::nextafter(x, 1e300)), expect(std::nextafter(x, -1e300)), expect(x * 1.5), expect(x / 2);
    }
  }
  expect(0x1.FFFFFEFFFFFFFp127), expect(0x1.FFFFFFp127), expect(0x1p-150), expect(0x1.0000000000001p-150);
  INFO(t.first);
  CHECK(t.differences == 0);
  CHECK(t.compared > (1u << 24));
}

TEST_CASE("doubles narrow to half and bfloat16 by definition") {
  tally t;
  oracle::random random(31);
  const auto expect = [&t](double x) {
    const std::uint16_t half = exact::narrow<octet::float16>(x).bits(),
                        brain = exact::narrow<octet::bfloat16>(x).bits();
    const double h = oracle::rounded(x, 11, -24, 65504), b = oracle::rounded(x, 8, -133, std::ldexp(255, 120));
    t.expect(std::isnan(x) ? half == 0x7FFF : bits(value_of_half(half)) == bits(h),
             [&] { return difference("half", bits(x), half, 0); });
    t.expect(std::isnan(x) ? brain == 0x7FFF : bits(value_of_bfloat16(brain)) == bits(b),
             [&] { return difference("bfloat16", bits(x), brain, 0); });
  };
  for (int i = 0; i < 1 << 20; ++i) {
    const std::uint64_t any = random();
    expect(bit_cast<double>(any));
    const std::uint64_t half_exponent = 1023 - 28 + (any >> 40) % 46, brain_exponent = 1023 - 137 + (any >> 40) % 268;
    expect(bit_cast<double>((half_exponent << 52 | (any << 24 >> 52) << 40) + (any & 3) - 1));
    expect(bit_cast<double>((brain_exponent << 52 | (any << 24 >> 52) << 40) + (any & 3) - 1));
  }
  // Every finite half and bfloat16, the tie above it, and next to that.
  for (unsigned i = 0; i < 65536; ++i) {
    const auto h = static_cast<std::uint16_t>(i), up = static_cast<std::uint16_t>(i + 1);
    for (const auto value : {&value_of_half, &value_of_bfloat16}) {
      const double x = value(h), tie = (value(h) + value(up)) / 2;
      expect(x);
      if (!std::isfinite(tie)) continue;
      expect(tie), expect(std::nextafter(tie, 1e300)), expect(std::nextafter(tie, -1e300));
    }
  }
  INFO(t.first);
  CHECK(t.differences == 0);
}

TEST_CASE("16-bit floats construct from every number in one rounding") {
  // Through float 1 + 2^-11 + 2^-40 would tie; a long integer beyond 2^53 too.
  CHECK(octet::float16(1 + 0x1p-11 + 0x1p-40).bits() == 0x3C01);
  CHECK(octet::float16(1 + 0x1p-11).bits() == 0x3C00);
  CHECK(octet::float16(-1e9f).bits() == 0xFC00);
  CHECK(octet::float16(1e9).bits() == 0x7C00);
  CHECK(octet::float16(65519.99).bits() == 0x7BFF);
  CHECK(octet::float16(65520).bits() == 0x7C00);
  CHECK(octet::bfloat16((std::int64_t{0x101} << 54) + 1).bits() == 0x5E81);
  CHECK(octet::bfloat16(std::int64_t{0x101} << 54).bits() == 0x5E80);
  CHECK(octet::bfloat16(std::numeric_limits<float>::quiet_NaN()).bits() == 0x7FFF);
  CHECK(octet::float16(-0.0f).bits() == 0x8000);
  CHECK(octet::float16(0x1p-25).bits() == 0x0000);
  CHECK(octet::float16(0x1.00001p-25).bits() == 0x0001);
  CHECK(static_cast<double>(octet::float16::from_bits(0x0001)) == 0x1p-24);
  CHECK(static_cast<long double>(octet::bfloat16::from_bits(0x0001)) == 0x1p-133L);
  static_assert(!std::is_convertible_v<float, octet::float16> && !std::is_convertible_v<octet::float16, float>);
  static_assert(!std::is_constructible_v<octet::float16, bool>);
  static_assert(std::is_trivial_v<octet::float16> && sizeof(octet::bfloat16) == 2);
}

TEST_CASE("products and quotients are those of the machine") {
  tally t;
  oracle::random random(37);
  for (int i = 0; i < 1 << 23; ++i) {
    const std::uint64_t any = random();
    expect_arithmetic(t, static_cast<std::uint32_t>(any), static_cast<std::uint32_t>(any >> 32));
    // Results in the range of float more often, with significands near a power of two, where quotients come close
    // to ties.
    const auto near = [](std::uint64_t r) {
      const std::uint32_t significand = (r & 1) != 0 ? static_cast<std::uint32_t>(r >> 9) & 0x7FFFFFu
                                                     : static_cast<std::uint32_t>(0u - (r >> 1) % 64) & 0x7FFFFFu;
      return static_cast<std::uint32_t>(127 - 70 + (r >> 40) % 140) << 23 | significand;
    };
    expect_arithmetic(t, near(any), near(random()));
  }
  for (const std::uint32_t i : corners) {
    for (const std::uint32_t j : corners) {
      for (const std::uint32_t signs : {0u, 1u, 2u, 3u}) expect_arithmetic(t, i | signs << 31, j | signs >> 1 << 31);
      expect_arithmetic(t, i, static_cast<std::uint32_t>(random()) & 0x007FFFFFu);  // subnormals
      expect_arithmetic(t, static_cast<std::uint32_t>(random()) & 0x007FFFFFu, j);
    }
  }
  INFO(t.first);
  CHECK(t.differences == 0);
  CHECK(t.compared > (1u << 25));
}

TEST_CASE("a product goes to 16 bits in one rounding") {
  tally t;
  oracle::random random(41);
  for (int i = 0; i < 1 << 20; ++i) {
    const std::uint64_t any = random();
    const float a = std::ldexp(static_cast<float>(any >> 40), static_cast<int>(any % 32) - 40);
    const float b = std::ldexp(static_cast<float>(any << 24 >> 40), static_cast<int>(any >> 5) % 16 - 30);
    const double x = static_cast<double>(a) * static_cast<double>(b);
    const std::uint16_t half = exact::product<octet::float16>(a, b).bits(),
                        brain = exact::product<octet::bfloat16>(a, b).bits();
    t.expect(bits(value_of_half(half)) == bits(oracle::rounded(x, 11, -24, 65504)),
             [&] { return difference("half", any, half, 0); });
    t.expect(bits(value_of_bfloat16(brain)) == bits(oracle::rounded(x, 8, -133, std::ldexp(255, 120))),
             [&] { return difference("bfloat16", any, brain, 0); });
  }
  INFO(t.first);
  CHECK(t.differences == 0);
}

static_assert(exact::product(3.0f, 0.5f) == 1.5f && exact::quotient(1.0f, 3.0f) == 1.0f / 3.0f);
static_assert(exact::widen(0x1p-149f) == 0x1p-149 && exact::narrow<float>(0x1p-149) == 0x1p-149f);
