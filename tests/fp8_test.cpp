// The byte: what fp8 is to the language, and comparison, classification and neighbours over all codes of every format.
// SPDX-License-Identifier: MIT
#include "octet/fp8.hpp"

#include <cstring>
#include <type_traits>

#include "catch.hpp"
#include "formats.hpp"

namespace {

template <class F>
constexpr bool is_one_trivial_byte = sizeof(F) == 1 && alignof(F) == 1 &&
                                     std::is_trivial_v<F>&& std::is_standard_layout_v<F>&& std::is_trivially_copyable_v<
                                         F>&& std::is_trivially_default_constructible_v<F>&& F{}
                                             .bits() == 0;

template <class... F>
constexpr bool all_are_trivial_bytes(format_list<F...>) {
  return (is_one_trivial_byte<F> && ...);
}
static_assert(all_are_trivial_bytes(all_formats{}));

template <class F, class = void>
constexpr bool negates = false;
template <class F>
constexpr bool negates<F, std::void_t<decltype(-std::declval<F>())>> = true;
static_assert(negates<octet::e4m3> && negates<octet::e2m1> && !negates<octet::e8m0>);

// The aliases are what they are said to be.
static_assert(std::is_same_v<octet::e4m3, octet::fp8<4, 3, octet::encoding::fn, 7>>);
static_assert(std::is_same_v<octet::e4m3fn, octet::e4m3>);
static_assert(std::is_same_v<octet::e5m2, octet::fp8<5, 2, octet::encoding::ieee, 15>>);
static_assert(std::is_same_v<octet::e4m3fnuz, octet::fp8<4, 3, octet::encoding::fnuz, 8>>);
static_assert(std::is_same_v<octet::p3109_p3, octet::fp8<5, 2, octet::encoding::p3109, 16>>);
static_assert(std::is_same_v<octet::e8m0, octet::fp8<8, 0, octet::encoding::exponent, 127>>);
static_assert(std::is_same_v<octet::e2m1, octet::fp8<2, 1, octet::encoding::finite, 1>>);

// Usable in constant expressions.
constexpr octet::e4m3 one = octet::e4m3::from_bits(0x38), two = octet::e4m3::from_bits(0x40);
static_assert(one < two && one != two && one <= one && two > one && two >= two && !(one == two));
static_assert((-one).bits() == 0xB8 && abs(-one) == one && signbit(-one) && !signbit(one));
static_assert(isnan(octet::e4m3::from_bits(0x7F)) && isinf(octet::e5m2::from_bits(0xFC)) && isfinite(one));
static_assert(nextafter(one, two).bits() == 0x39 && nextafter(one, -two).bits() == 0x37);

// A byte as it may lie in memory, bits above the code included.
template <class F>
F raw(unsigned byte) {
  const auto b = static_cast<unsigned char>(byte);
  F q;
  std::memcpy(&q, &b, 1);
  return q;
}

// All six comparisons, a bit each.
template <class T>
unsigned comparisons(T a, T b) {
  unsigned bits = 0;
  for (const bool holds : {a == b, a != b, a<b, a> b, a <= b, a >= b}) bits = bits << 1 | (holds ? 1u : 0u);
  return bits;
}

// The next value above x, or below, on the format's own scale with its infinities; x itself at the ends.
double neighbour(const oracle::table& table, double x, bool above) {
  double best = x;
  for (const double y : table.all) {
    if (above ? y > x && (best == x || y < best) : y < x && (best == x || y > best)) best = y;
  }
  return best;
}

}  // namespace

TEST_CASE("all pairs of codes compare as their values do") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    tally t;
    for (unsigned i = 0; i < table.codes; ++i) {
      for (unsigned j = 0; j < table.codes; ++j) {
        const unsigned got = comparisons(raw<F>(i), raw<F>(j)), wanted = comparisons(table.all[i], table.all[j]);
        t.expect(got == wanted, [&] { return difference(table.about.name, i << 8 | j, got, wanted); });
      }
    }
    INFO(t.first);
    CHECK(t.differences == 0);
    CHECK(t.compared == table.codes * table.codes);
  });
}

TEST_CASE("all codes classify as their values do") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    for (unsigned i = 0; i < table.codes; ++i) {
      const F q = F::from_bits(static_cast<std::uint8_t>(i));
      const double x = table.all[i];
      INFO(table.about.name << " " << i);
      CHECK(q.bits() == i);
      CHECK(isnan(q) == std::isnan(x));
      CHECK(isinf(q) == std::isinf(x));
      CHECK(isfinite(q) == std::isfinite(x));
      CHECK(signbit(q) == ((i & table.sign) != 0));
    }
    CHECK(F::max_code == table.largest);
    CHECK(F::nan_code == table.nan);
    CHECK(F::has_infinity == (table.infinite != 0));
    if (F::has_infinity) CHECK(F::infinity_code == table.infinite);
    CHECK(F::has_negative_zero == table.signed_zero);
    CHECK(1u << F::width == table.codes);
  });
}

TEST_CASE("abs and minus change the sign and nothing else") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    for (unsigned i = 0; i < table.codes; ++i) {
      const F q = F::from_bits(static_cast<std::uint8_t>(i));
      INFO(table.about.name << " " << i);
      // The one NaN of the formats without -0 stays that NaN; the NaNs of the others lose their sign.
      const unsigned magnitude = i == table.nan && !table.signed_zero ? i : i & ~table.sign;
      CHECK(abs(q).bits() == magnitude);
      if constexpr (negates<F>) {
        const bool fixed = !table.signed_zero && (i & ~table.sign) == 0;  // 0 and the NaN of formats without -0
        CHECK((-q).bits() == (fixed ? i : i ^ table.sign));
      }
    }
  });
}

TEST_CASE("nextafter goes to the next value for all pairs of codes") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    tally t;
    for (unsigned i = 0; i < table.codes; ++i) {
      const double above = neighbour(table, table.all[i], true), below = neighbour(table, table.all[i], false);
      for (unsigned j = 0; j < table.codes; ++j) {
        const double x = table.all[i], y = table.all[j];
        const F next =
            nextafter(F::from_bits(static_cast<std::uint8_t>(i)), F::from_bits(static_cast<std::uint8_t>(j)));
        const double got = table.all[next.bits()];
        bool same = false;
        if (std::isnan(x) || std::isnan(y))
          same = std::isnan(got);
        else if (x == y)
          same = next.bits() == j;
        else  // A step down to zero keeps the sign, as std::nextafter does.
          same = got == (x < y ? above : below) &&
                 (got != 0 || std::signbit(got) == (table.signed_zero && std::signbit(x)));
        t.expect(same, [&] { return difference(table.about.name, i << 8 | j, next.bits(), 0); });
      }
    }
    INFO(t.first);
    CHECK(t.differences == 0);
  });
}

TEST_CASE("the bits above a code of less than 8 are ignored") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    tally t;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const unsigned code = byte & (table.codes - 1);
      const F dirty = raw<F>(byte), clean = F::from_bits(static_cast<std::uint8_t>(code));
      const bool number = !std::isnan(table.all[code]);
      bool same = dirty.bits() == code && F::from_bits(static_cast<std::uint8_t>(byte)).bits() == code &&
                  dirty.magnitude() == clean.magnitude() && isnan(dirty) == isnan(clean) &&
                  isinf(dirty) == isinf(clean) && isfinite(dirty) == isfinite(clean) &&
                  signbit(dirty) == signbit(clean) && abs(dirty).bits() == abs(clean).bits() &&
                  (dirty == clean) == number && (dirty <= clean) == number && !(dirty < clean) && !(dirty > clean);
      if constexpr (negates<F>) same = same && (-dirty).bits() == (-clean).bits();
      for (unsigned other = 0; other < table.codes; ++other) {
        const F to = F::from_bits(static_cast<std::uint8_t>(other));
        same = same && nextafter(dirty, to).bits() == nextafter(clean, to).bits() &&
               nextafter(to, dirty).bits() == nextafter(to, clean).bits() && (dirty < to) == (clean < to);
      }
      t.expect(same, [&] { return difference(table.about.name, byte, dirty.bits(), code); });
    }
    INFO(t.first);
    CHECK(t.differences == 0);
  });
}

TEST_CASE("a computed code has zeros above it") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    const auto byte_of = [](F q) {
      unsigned char byte = 0;
      std::memcpy(&byte, &q, 1);
      return unsigned{byte};
    };
    for (unsigned byte = 0; byte < 256; ++byte) {
      INFO(table.about.name << " " << byte);
      CHECK(byte_of(F::from_bits(static_cast<std::uint8_t>(byte))) < table.codes);
      CHECK(byte_of(abs(raw<F>(byte))) < table.codes);
      if constexpr (negates<F>) CHECK(byte_of(-raw<F>(byte)) < table.codes);
    }
  });
}
