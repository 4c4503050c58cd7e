// numeric_limits of all 13 formats as numbers, and hashes that agree with ==.
// SPDX-License-Identifier: MIT
#include "octet/limits.hpp"

#include <set>
#include <unordered_set>

#include "catch.hpp"
#include "formats.hpp"
#include "octet/convert.hpp"

namespace {

// A row of the table; codes in hexadecimal. exponents: the largest and least n such that 2^(n - 1) and 10^n are
// normal values.
struct row {
  int digits, digits10, max_digits10, min_exponent, max_exponent, min_exponent10, max_exponent10;
  unsigned epsilon, round_error, min, denorm_min, max;
  double largest;
};

template <class F>
constexpr bool is(const row& r) {
  using L = std::numeric_limits<F>;
  return L::is_specialized && L::digits == r.digits && L::digits10 == r.digits10 && L::max_digits10 == r.max_digits10 &&
         L::min_exponent == r.min_exponent && L::max_exponent == r.max_exponent &&
         L::min_exponent10 == r.min_exponent10 && L::max_exponent10 == r.max_exponent10 &&
         L::epsilon().bits() == r.epsilon && L::round_error().bits() == r.round_error && L::min().bits() == r.min &&
         L::denorm_min().bits() == r.denorm_min && L::max().bits() == r.max &&
         octet::decode<double>(L::max()) == r.largest;
}

static_assert(is<octet::e4m3>({4, 0, 3, -5, 9, -1, 2, 0x20, 0x30, 0x08, 0x01, 0x7E, 448}));
static_assert(is<octet::e5m2>({3, 0, 2, -13, 16, -4, 4, 0x34, 0x38, 0x04, 0x01, 0x7B, 57344}));
static_assert(is<octet::e4m3fnuz>({4, 0, 3, -6, 8, -2, 2, 0x28, 0x38, 0x08, 0x01, 0x7F, 240}));
static_assert(is<octet::e5m2fnuz>({3, 0, 2, -14, 16, -4, 4, 0x38, 0x3C, 0x04, 0x01, 0x7F, 57344}));
static_assert(is<octet::e4m3b11fnuz>({4, 0, 3, -9, 5, -3, 1, 0x40, 0x50, 0x08, 0x01, 0x7F, 30}));
static_assert(is<octet::e4m3_ieee>({4, 0, 3, -5, 8, -1, 2, 0x20, 0x30, 0x08, 0x01, 0x77, 240}));
static_assert(is<octet::e3m4>({5, 1, 3, -1, 4, 0, 1, 0x04, 0x20, 0x10, 0x01, 0x6F, 15.5}));
static_assert(is<octet::p3109_p3>({3, 0, 2, -14, 16, -4, 4, 0x38, 0x3C, 0x04, 0x01, 0x7E, 49152}));
static_assert(is<octet::p3109_p4>({4, 0, 3, -6, 8, -2, 2, 0x28, 0x38, 0x08, 0x01, 0x7E, 224}));
static_assert(is<octet::e2m3>({4, 0, 3, 1, 3, 0, 0, 0x01, 0x04, 0x08, 0x01, 0x1F, 7.5}));
static_assert(is<octet::e3m2>({3, 0, 2, -1, 5, 0, 1, 0x04, 0x08, 0x04, 0x01, 0x1F, 28}));
static_assert(is<octet::e2m1>({2, 0, 2, 1, 3, 0, 0, 0x01, 0x01, 0x02, 0x01, 0x07, 6}));
static_assert(is<octet::e8m0>({1, 0, 2, -126, 128, -38, 38, 0x7F, 0x7E, 0x00, 0x00, 0xFE, 0x1p127}));

// What every row has in common, and what follows from the format.
template <class F>
constexpr bool is_consistent() {
  using L = std::numeric_limits<F>;
  constexpr bool signed_format = !std::is_same_v<F, octet::e8m0>;
  return L::is_signed == signed_format && !L::is_integer && !L::is_exact && L::is_bounded && !L::is_modulo &&
         !L::is_iec559 && !L::traps && !L::tinyness_before && L::radix == 2 && !L::has_signaling_NaN &&
         L::has_infinity == F::has_infinity && L::has_quiet_NaN == F::has_nan &&
         (L::has_infinity ? isinf(L::infinity()) && !signbit(L::infinity()) : L::infinity().bits() == 0) &&
         (L::has_quiet_NaN ? isnan(L::quiet_NaN()) : L::quiet_NaN().bits() == 0) &&
         (signed_format ? octet::decode<double>(L::lowest()) == -octet::decode<double>(L::max())
                        : L::lowest() == L::min());
}

template <class... F>
constexpr bool all_are_consistent(format_list<F...>) {
  return (is_consistent<F>() && ...);
}
static_assert(all_are_consistent(all_formats{}));

static_assert(std::numeric_limits<octet::e5m2>::quiet_NaN().bits() == 0x7F);
static_assert(std::numeric_limits<octet::e4m3>::quiet_NaN().bits() == 0x7F);
static_assert(std::numeric_limits<octet::e5m2fnuz>::quiet_NaN().bits() == 0x80);
static_assert(std::numeric_limits<octet::e8m0>::quiet_NaN().bits() == 0xFF);
static_assert(std::numeric_limits<octet::e5m2>::infinity().bits() == 0x7C);
static_assert(std::numeric_limits<octet::p3109_p4>::infinity().bits() == 0x7F);
static_assert(std::numeric_limits<octet::e5m2>::has_denorm == std::denorm_present);

}  // namespace

TEST_CASE("limits are the values that the codes of a format have") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    using L = std::numeric_limits<F>;
    INFO(table.about.name);
    const int mantissa = table.about.mantissa_bits;
    CHECK(octet::decode<double>(L::max()) == table.grid.back());
    CHECK(octet::decode<double>(L::epsilon()) == std::ldexp(1.0, -mantissa));
    CHECK(octet::decode<double>(L::round_error()) == 0.5);
    CHECK(octet::decode<double>(L::min()) == std::ldexp(1.0, L::min_exponent - 1));
    CHECK(octet::decode<double>(L::denorm_min()) == (table.grid[0] > 0 ? table.grid[0] : table.grid[1]));
    CHECK(std::ilogb(table.grid.back()) == L::max_exponent - 1);
    CHECK(std::pow(10.0, L::max_exponent10) <= table.grid.back());
    CHECK(std::pow(10.0, L::max_exponent10 + 1) > table.grid.back());
    CHECK(std::pow(10.0, L::min_exponent10) >= octet::decode<double>(L::min()));
    // Within one of the exponent: 10^0 where the least normal value is 1.
    CHECK(std::pow(10.0, L::min_exponent10 - 1) < octet::decode<double>(L::min()));
  });
}

TEST_CASE("equal values have equal hashes, and the hashes of a format's values differ") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    INFO(table.about.name);
    const std::hash<F> hash;
    std::set<std::size_t> hashes;
    std::set<double> values;
    int unequal = 0;
    for (unsigned i = 0; i < table.codes; ++i) {
      const F a = F::from_bits(static_cast<std::uint8_t>(i));
      if (std::isnan(table.all[i])) continue;
      hashes.insert(hash(a));
      values.insert(table.all[i]);
      for (unsigned j = 0; j < table.codes; ++j) {
        const F b = F::from_bits(static_cast<std::uint8_t>(j));
        unequal += a == b && hash(a) != hash(b);
      }
    }
    CHECK(unequal == 0);
    CHECK(hashes.size() == values.size());
  });
  std::unordered_set<octet::e5m2> set;
  set.insert(octet::e5m2::from_bits(0x00));
  set.insert(octet::e5m2::from_bits(0x80));
  CHECK(set.size() == 1);
}
