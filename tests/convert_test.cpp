// One value: encode and decode for every source type, target type and format, against the oracle.
// SPDX-License-Identifier: MIT
#include "octet/convert.hpp"

#include <cfloat>
#include <cstring>
#include <string>

#include "catch.hpp"
#include "formats.hpp"
#include "octet/random.hpp"

namespace {

using octet::bit_cast;
using octet::overflow;
using octet::rounding;

// The conversion under test behind a pointer, so that what is tested is compiled once per format and type.
template <class F, class T>
unsigned code_of(T x, overflow o, rounding r) {
  return octet::encode<F>(x, o, r).bits();
}

template <class T>
using encoder = unsigned (*)(T, overflow, rounding);

// x in every rounding mode and both overflow modes. `exact` is x as the oracle takes it.
template <class T, class Real>
void compare_all_modes(tally& t, const oracle::table& table, encoder<T> encode, T x, Real exact,
                       unsigned long long shown) {
  for (const overflow o : overflows) {
    for (const rounding r : roundings) {
      const unsigned got = encode(x, o, r);
      const unsigned wanted = table.encode(exact, oracle_mode(r), o == overflow::saturate);
      t.expect(got == wanted, [&] { return difference(table.about.name, shown, got, wanted); });
    }
  }
}

template <class F, class T, class Real>
void compare(tally& t, const oracle::table& table, T x, Real exact, unsigned long long shown) {
  compare_all_modes(t, table, &code_of<F, T>, x, exact, shown);
}

template <class F>
void compare(tally& t, const oracle::table& table, double x) {
  compare<F>(t, table, x, x, bit_cast<std::uint64_t>(x));
}

template <class F>
void compare(tally& t, const oracle::table& table, float x) {
  compare<F>(t, table, x, x, bit_cast<std::uint32_t>(x));
}

// The value of a 16-bit float, from its fields.
template <class T>
double value_of(std::uint16_t bits) {
  using Traits = octet::float_traits<T>;
  const int field = (bits & 0x7FFF) >> Traits::mantissa_bits;
  const int mantissa = bits & ((1 << Traits::mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (field == (1 << Traits::exponent_bits) - 1)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  const int whole = mantissa + (field == 0 ? 0 : 1 << Traits::mantissa_bits);
  return sign * std::ldexp(whole, (field == 0 ? 1 : field) - Traits::bias - Traits::mantissa_bits);
}

template <class T>
constexpr bool is_half = octet::float_traits<T>::exponent_bits == 5;

template <class T>
double rounded_to(double x) {
  return is_half<T> ? oracle::rounded(x, 11, -24, 65504) : oracle::rounded(x, 8, -133, std::ldexp(255, 120));
}

template <class T>
void check_16_bit_source(const oracle::table& table, encoder<T> encode) {
  tally t;
  for (unsigned i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    compare_all_modes(t, table, encode, octet::float_traits<T>::from_bits(bits), static_cast<float>(value_of<T>(bits)),
                      i);
  }
  INFO(t.first);
  CHECK(t.differences == 0);
  CHECK(t.compared == 65536 * 10);
}

template <class T>
void check_16_bit_sources() {
  for_each_format([](auto tag, const oracle::table& table) {
    check_16_bit_source<T>(table, &code_of<typename decltype(tag)::type, T>);
  });
}

}  // namespace

TEST_CASE("every half encodes as the oracle does in every mode") { check_16_bit_sources<octet::float16>(); }

TEST_CASE("every bfloat16 encodes as the oracle does in every mode") { check_16_bit_sources<octet::bfloat16>(); }

#if OCTET_HAS_FLOAT16
TEST_CASE("the compiler's half encodes as the oracle does in every mode") { check_16_bit_sources<_Float16>(); }
#endif

TEST_CASE("doubles and floats at every value and every tie, and one unit either side, encode as the oracle does") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    tally t;
    const double infinity = std::numeric_limits<double>::infinity();
    const auto around = [&](double x) {
      for (const double sign : {1.0, -1.0}) {
        for (const double y : {x, std::nextafter(x, infinity), std::nextafter(x, -infinity)})
          compare<F>(t, table, sign * y);
        const auto f = static_cast<float>(x);
        const auto limit = static_cast<float>(infinity);
        for (const float y : {f, std::nextafter(f, limit), std::nextafter(f, -limit)})
          compare<F>(t, table, static_cast<float>(sign) * y);
      }
    };
    for (unsigned code = 0; code <= table.largest; ++code) {
      around(table.grid[code]);
      around(table.grid[code] + table.steps[code] / 2);
      around(table.grid[code] + table.steps[code] / 4);
    }
    around(table.beyond);
    around(2 * table.beyond);
    around(table.grid[0] / 2);
    around(FLT_MAX);
    around(FLT_TRUE_MIN);
    INFO(t.first);
    CHECK(t.differences == 0);
    CHECK(t.compared >= table.largest * 3ull * 2 * 6 * 10);
  });
}

TEST_CASE("zeros, infinities, NaNs, the least and the largest doubles and floats encode as the oracle does") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    tally t;
    for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{1} << 63}) {
      for (const std::uint64_t bits :
           {0x0ull, 0x1ull, 0x000FFFFFFFFFFFFFull, 0x0010000000000000ull, 0x7FEFFFFFFFFFFFFFull, 0x7FF0000000000000ull,
            0x7FF0000000000001ull, 0x7FF4000000000000ull, 0x7FF8000000000000ull, 0x7FFC000000000000ull,
            0x7FFFFFFFFFFFFFFFull, 0x36A0000000000000ull, 0x3800000000000001ull})
        compare<F>(t, table, bit_cast<double>(sign | bits));
      for (const std::uint32_t bits : {0x0u, 0x1u, 0x7FFFFFu, 0x800000u, 0x7F7FFFFFu, 0x7F800000u, 0x7F800001u,
                                       0x7FA00000u, 0x7FC00000u, 0x7FE00000u, 0x7FFFFFFFu})
        compare<F>(t, table, bit_cast<float>(static_cast<std::uint32_t>(sign >> 32) | bits));
    }
    INFO(t.first);
    CHECK(t.differences == 0);
  });
}

TEST_CASE("a double is rounded once, not by way of float") {
  const double x = bit_cast<double>(std::uint64_t{0x3FF1000000001000});
  CHECK(octet::encode<octet::e4m3>(x).bits() == 0x39);
  CHECK(octet::encode<octet::e4m3>(static_cast<float>(x)).bits() == 0x38);
  CHECK(octet::e4m3(x).bits() == 0x39);
}

TEST_CASE("NaN encodes to the byte that its type and format ask for") {
  using namespace octet;
  const auto f = [](std::uint32_t bits) { return bit_cast<float>(bits); };
  const auto d = [](std::uint64_t bits) { return bit_cast<double>(bits); };
  for (const overflow o : overflows) {
    for (const rounding r : roundings) {
      CHECK(encode<e4m3>(f(0xFFC00000), o, r).bits() == 0x7F);
      CHECK(encode<e5m2>(f(0xFF800001), o, r).bits() == 0x7F);
      CHECK(encode<e4m3>(float16::from_bits(0xFE00), o, r).bits() == 0x7F);
      CHECK(encode<e5m2>(bfloat16::from_bits(0xFF81), o, r).bits() == 0x7F);
      CHECK(encode<e4m3>(d(0xFFF8000000000000), o, r).bits() == 0xFF);
      CHECK(encode<e4m3_ieee>(d(0xFFF8000000000000), o, r).bits() == 0xFF);
      CHECK(encode<e3m4>(d(0xFFF8000000000000), o, r).bits() == 0xFF);
      CHECK(encode<e5m2>(d(0x7FF8000000000000), o, r).bits() == 0x7E);
      CHECK(encode<e5m2>(d(0x7FF4000000000000), o, r).bits() == 0x7F);
      CHECK(encode<e5m2>(d(0xFFFC000000000000), o, r).bits() == 0xFF);
      CHECK(encode<e5m2>(d(0xFFF0000000000001), o, r).bits() == 0xFE);
      CHECK(encode<e4m3fnuz>(d(0xFFF8000000000000), o, r).bits() == 0x80);
      CHECK(encode<e5m2fnuz>(f(0x7FC00000), o, r).bits() == 0x80);
      CHECK(encode<p3109_p3>(d(0x7FF8000000000000), o, r).bits() == 0x80);
      CHECK(encode<e8m0>(d(0xFFF8000000000000), o, r).bits() == 0xFF);
      CHECK(encode<e2m3>(f(0xFFC00000), o, r).bits() == 0x1F);
      CHECK(encode<e3m2>(d(0xFFF8000000000000), o, r).bits() == 0x1F);
      CHECK(encode<e2m1>(f(0x7FC00000), o, r).bits() == 0x07);
    }
  }
}

TEST_CASE("long doubles round once") {
  if (std::numeric_limits<long double>::digits == std::numeric_limits<double>::digits) return;
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    tally t;
    const long double infinity = std::numeric_limits<long double>::infinity();
    const auto around = [&](long double x) {
      for (const long double sign : {1.0L, -1.0L}) {
        for (const long double y : {x, std::nextafter(x, infinity), std::nextafter(x, -infinity)})
          compare<F>(t, table, sign * y, sign * y, bit_cast<std::uint64_t>(static_cast<double>(sign * y)));
      }
    };
    for (unsigned code = 0; code <= table.largest; ++code) {
      around(table.grid[code]);
      around(table.grid[code] + table.steps[code] / 2);
    }
    around(LDBL_MAX);
    around(LDBL_MIN);
    around(DBL_MAX);
    around(DBL_MIN);
    around(DBL_TRUE_MIN);
    around(infinity);
    INFO(t.first);
    CHECK(t.differences == 0);
  });
  // NaN follows the rule of double.
  CHECK(octet::encode<octet::e4m3>(std::numeric_limits<long double>::quiet_NaN()).bits() == 0x7F);
  CHECK(octet::encode<octet::e5m2>(-std::numeric_limits<long double>::quiet_NaN()).bits() == 0xFE);
}

namespace {

template <class I>
void check_every_value(const oracle::table& table, encoder<I> encode) {
  tally t;
  for (long long i = std::numeric_limits<I>::min(); i <= static_cast<long long>(std::numeric_limits<I>::max()); ++i)
    compare_all_modes(t, table, encode, static_cast<I>(i), static_cast<double>(i), static_cast<unsigned long long>(i));
  INFO(t.first);
  CHECK(t.differences == 0);
}

// Powers of two, halfway between them, some steps either side, the format's own ties, the ends, and random ones of
// every length.
template <class I>
void check_chosen_values(const oracle::table& table, encoder<I> encode) {
  tally t;
  const auto around = [&](I x) {
    for (int step = -2; step <= 2; ++step) {
      const auto y = static_cast<I>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(std::int64_t{step}));
      const auto z = static_cast<I>(0 - static_cast<std::uint64_t>(y));
      compare_all_modes(t, table, encode, y, static_cast<long double>(y), static_cast<unsigned long long>(y));
      compare_all_modes(t, table, encode, z, static_cast<long double>(z), static_cast<unsigned long long>(z));
    }
  };
  for (int k = 1; k < 8 * static_cast<int>(sizeof(I)); ++k) {
    around(static_cast<I>(std::uint64_t{1} << k));
    around(static_cast<I>(std::uint64_t{3} << (k - 1)));
  }
  for (unsigned code = 0; code <= table.largest; ++code)
    if (table.grid[code] < 1e9) around(static_cast<I>(table.grid[code] + table.steps[code] / 2));
  around(std::numeric_limits<I>::max());
  around(std::numeric_limits<I>::min());
  oracle::random random(7);
  for (int i = 0; i < 256; ++i) around(static_cast<I>(random() >> (i % 64)));
  INFO(t.first);
  CHECK(t.differences == 0);
}

template <class... I>
void check_every_value_of() {
  for_each_format([](auto tag, const oracle::table& table) {
    (check_every_value<I>(table, &code_of<typename decltype(tag)::type, I>), ...);
  });
}

template <class... I>
void check_chosen_values_of() {
  for_each_format([](auto tag, const oracle::table& table) {
    (check_chosen_values<I>(table, &code_of<typename decltype(tag)::type, I>), ...);
  });
}

}  // namespace

TEST_CASE("integers of 8 and 16 bits round once, every value") {
  check_every_value_of<signed char, unsigned char, char, short, unsigned short>();
}

TEST_CASE("integers of 32 and 64 bits round once") {
  // Where the oracle's long double holds them all.
  check_chosen_values_of<int, unsigned>();
  if (std::numeric_limits<long double>::digits >= 64)
    check_chosen_values_of<long, unsigned long, long long, unsigned long long>();
  // What a hop over double loses: 2^53 + 1 lies above a power of two, 2^60 + 1 too.
  CHECK(octet::encode<octet::e8m0>((std::int64_t{1} << 53) + 1).bits() == 127 + 54);
  CHECK(octet::encode<octet::e8m0>((std::uint64_t{1} << 60) + 1).bits() == 127 + 61);
  CHECK(octet::encode<octet::e8m0>(~std::uint64_t{0}).bits() == 127 + 64);
  CHECK(octet::encode<octet::e8m0>(~std::uint64_t{0}, overflow::saturate, rounding::toward_zero).bits() == 127 + 63);
  CHECK(octet::encode<octet::e8m0>((std::uint64_t{3} << 60) + 1, overflow::saturate, rounding::nearest_even).bits() ==
        127 + 62);
  CHECK(octet::encode<octet::e8m0>((std::uint64_t{3} << 60) - 1, overflow::saturate, rounding::nearest_even).bits() ==
        127 + 61);
  CHECK(octet::encode<octet::e5m2>(std::numeric_limits<std::int64_t>::min()).bits() == 0xFB);
}

TEST_CASE("every code decodes exactly to float, double and long double") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    tally t;
    for (unsigned code = 0; code < table.codes; ++code) {
      const F q = F::from_bits(static_cast<std::uint8_t>(code));
      const float f = octet::decode(q);
      const double d = octet::decode<double>(q);
      const double wanted = table.all[code];
      bool same = false;
      if (std::isnan(wanted)) {
        same = bit_cast<std::uint32_t>(f) == (F::is_signed ? 0x7FFFFFFFu : 0x7FFF0000u) &&
               bit_cast<std::uint64_t>(d) == (F::is_signed ? 0x7FFFFFFFE0000000ull : 0x7FFFE00000000000ull) &&
               std::isnan(octet::decode<long double>(q));
      } else {
        same = bit_cast<std::uint32_t>(f) == bit_cast<std::uint32_t>(static_cast<float>(wanted)) &&
               bit_cast<std::uint64_t>(d) == bit_cast<std::uint64_t>(wanted) &&
               octet::decode<long double>(q) == static_cast<long double>(wanted);
      }
      same = same && bit_cast<std::uint32_t>(static_cast<float>(q)) == bit_cast<std::uint32_t>(f) &&
             bit_cast<std::uint64_t>(static_cast<double>(q)) == bit_cast<std::uint64_t>(d);
      t.expect(same, [&] { return difference(table.about.name, code, bit_cast<std::uint32_t>(f), 0); });
    }
    INFO(t.first);
    CHECK(t.differences == 0);
  });
}

namespace {

// decode and the conversion operator, which must agree.
template <class F, class T>
bool value_of_code(unsigned code, T& value) {
  const F q = F::from_bits(static_cast<std::uint8_t>(code));
  value = octet::decode<T>(q);
  const T same = static_cast<T>(q);
  return std::memcmp(&same, &value, sizeof(T)) == 0;
}

template <class T>
using decoder = bool (*)(unsigned, T&);

template <class T>
void check_decode_to_16_bits(const oracle::table& table, decoder<T> decode) {
  tally t;
  for (unsigned code = 0; code < table.codes; ++code) {
    T value{};
    const bool operator_agrees = decode(code, value);
    const std::uint16_t got = octet::float_traits<T>::to_bits(value);
    const double wanted = rounded_to<T>(table.all[code]);
    const bool same = std::isnan(wanted) ? got == 0x7FFF
                                         : bit_cast<std::uint64_t>(value_of<T>(got)) == bit_cast<std::uint64_t>(wanted);
    t.expect(same && operator_agrees, [&] { return difference(table.about.name, code, got, 0); });
  }
  INFO(t.first);
  CHECK(t.differences == 0);
}

template <class I>
void check_decode_to_integer(const oracle::table& table, decoder<I> decode) {
  using Limits = std::numeric_limits<I>;
  tally t;
  for (unsigned code = 0; code < table.codes; ++code) {
    const double x = table.all[code];
    I got = 0, wanted = 0;
    if (x >= std::ldexp(1.0, Limits::digits))
      wanted = Limits::max();
    else if (x <= (std::is_signed_v<I> ? -std::ldexp(1.0, Limits::digits) : 0.0))
      wanted = Limits::min();
    else if (!std::isnan(x))
      wanted = static_cast<I>(std::trunc(x));
    const bool operator_agrees = decode(code, got);
    t.expect(got == wanted && operator_agrees, [&] {
      return difference(table.about.name, code, static_cast<unsigned long long>(got),
                        static_cast<unsigned long long>(wanted));
    });
  }
  INFO(t.first);
  CHECK(t.differences == 0);
}

template <class... T>
void check_decode_to_16_bits_of() {
  for_each_format([](auto tag, const oracle::table& table) {
    (check_decode_to_16_bits<T>(table, &value_of_code<typename decltype(tag)::type, T>), ...);
  });
}

template <class... I>
void check_decode_to_integers() {
  for_each_format([](auto tag, const oracle::table& table) {
    (check_decode_to_integer<I>(table, &value_of_code<typename decltype(tag)::type, I>), ...);
  });
}

}  // namespace

TEST_CASE("every code decodes to the nearest half and bfloat16") {
  check_decode_to_16_bits_of<octet::float16, octet::bfloat16>();
#if OCTET_HAS_FLOAT16
  check_decode_to_16_bits_of<_Float16>();
#endif
}

TEST_CASE("every code decodes to integers by truncation and saturation, NaN to 0") {
  check_decode_to_integers<signed char, unsigned char, char, short, unsigned short, int, unsigned, long, unsigned long,
                           long long, unsigned long long, wchar_t, char16_t, char32_t>();
}

namespace {

template <class From, class To>
unsigned converted(unsigned code) {
  return To(From::from_bits(static_cast<std::uint8_t>(code))).bits();
}

void check_conversion(const oracle::table& source, const oracle::table& target, unsigned (*convert)(unsigned)) {
  tally t;
  const oracle::mode mode = target.sign != 0 ? oracle::mode::nearest_even : oracle::mode::upward;
  for (unsigned code = 0; code < source.codes; ++code) {
    const unsigned got = convert(code);
    // The same type is a copy, whatever NaN it is.
    const unsigned wanted = &source == &target ? code : target.encode(static_cast<float>(source.all[code]), mode, true);
    t.expect(got == wanted, [&] { return difference(target.about.name, code, got, wanted); });
  }
  INFO("from " << source.about.name << " to " << t.first);
  CHECK(t.differences == 0);
}

}  // namespace

TEST_CASE("conversions between any two formats round once and saturate") {
  for_each_format([](auto from, const oracle::table& source) {
    for_each_format([&](auto to, const oracle::table& target) {
      check_conversion(source, target, &converted<typename decltype(from)::type, typename decltype(to)::type>);
    });
  });
}

TEST_CASE("construction rounds to nearest even, E8M0 up, and saturates") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    const oracle::mode mode = F::is_signed ? oracle::mode::nearest_even : oracle::mode::upward;
    tally t;
    oracle::random random(11);
    for (int i = 0; i < 100000; ++i) {
      const double x =
          std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), static_cast<int>(random() % 48) - 90);
      const auto f = static_cast<float>(x);
      t.expect(F(x).bits() == table.encode(x, mode, true), [&] { return std::to_string(x); });
      t.expect(F(f).bits() == table.encode(f, mode, true), [&] { return std::to_string(x); });
      t.expect(static_cast<F>(x).bits() == octet::encode<F>(x).bits(), [&] { return std::to_string(x); });
    }
    INFO(t.first);
    CHECK(t.differences == 0);
  });
  CHECK(octet::e8m0(3.0).bits() == 0x81);
  CHECK(octet::e4m3(-1).bits() == 0xB8);
}

namespace {

template <class F, class T>
unsigned stochastic_code_of(T x, std::uint32_t random, overflow o) {
  return octet::encode_stochastic<F>(x, random, o).bits();
}

template <class T>
using stochastic_encoder = unsigned (*)(T, std::uint32_t, overflow);

template <class T>
void compare_stochastic(tally& t, const oracle::table& table, stochastic_encoder<T> encode, T x, std::uint32_t random) {
  for (const overflow o : overflows) {
    const unsigned got = encode(x, random, o);
    const unsigned wanted = table.encode_stochastic(x, random, o == overflow::saturate);
    t.expect(got == wanted, [&] {
      return difference(table.about.name, bit_cast<std::uint64_t>(static_cast<double>(x)), got, wanted) +
             " with the random bits " + std::to_string(random);
    });
  }
}

// Around the one draw at which x changes its neighbour.
template <class T>
void compare_at_the_draw(tally& t, const oracle::table& table, stochastic_encoder<T> encode, T x, std::uint64_t any) {
  const double fraction = table.find(std::fabs(x)).fraction;
  const auto draw = static_cast<std::uint64_t>(4294967296.0 - std::floor(fraction * 4294967296.0));
  for (std::uint64_t r = draw - 2; r <= draw + 2; ++r)
    if (r <= 0xFFFFFFFFu) compare_stochastic(t, table, encode, x, static_cast<std::uint32_t>(r));
  for (const std::uint32_t r : {0u, 1u, 0x80000000u, 0xFFFFFFFFu, static_cast<std::uint32_t>(any)})
    compare_stochastic(t, table, encode, x, r);
}

}  // namespace

TEST_CASE("stochastic rounding is floor(magnitude / spacing + random / 2^32), to the bit") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    tally t;
    oracle::random random(3);
    const auto both = [&](double x) {
      for (const double sign : {1.0, -1.0}) {
        compare_at_the_draw(t, table, &stochastic_code_of<F, double>, sign * x, random());
        compare_at_the_draw(t, table, &stochastic_code_of<F, float>, static_cast<float>(sign * x), random());
      }
    };
    for (unsigned code = 0; code <= table.largest; ++code) {
      both(table.grid[code]);
      for (int i = 0; i < 40; ++i)
        both(table.grid[code] + table.steps[code] * static_cast<double>(random() >> 11) * 0x1p-53);
      for (int k = 1; k < 40; ++k) {
        both(table.grid[code] + table.steps[code] * std::ldexp(1.0, -k));
        both(table.grid[code] + table.steps[code] * (1 - std::ldexp(1.0, -k)));
      }
    }
    // Far below the least step too, the chance is what it should be.
    for (int k = 1; k < 120; ++k) both(std::ldexp(table.steps[0], -k)), both(std::ldexp(1.75 * table.steps[0], -k));
    both(table.beyond), both(2 * table.beyond), both(FLT_MAX), both(DBL_MAX), both(DBL_TRUE_MIN);
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double x : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
      for (const std::uint32_t r : {0u, 0xFFFFFFFFu}) {
        compare_stochastic(t, table, &stochastic_code_of<F, double>, x, r);
        compare_stochastic(t, table, &stochastic_code_of<F, float>, static_cast<float>(x), r);
      }
    }
    INFO(t.first);
    CHECK(t.differences == 0);
  });
}

TEST_CASE("stochastic rounding of 16-bit floats and integers follows their values") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    tally t;
    oracle::random random(5);
    for (unsigned i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const auto r = static_cast<std::uint32_t>(random());
      const auto half = octet::float16::from_bits(bits);
      const auto brain = octet::bfloat16::from_bits(bits);
      const auto expect = [&](const char* what, unsigned got, double x) {
        const unsigned wanted = table.encode_stochastic(static_cast<float>(x), r, true);
        t.expect(got == wanted, [&] { return difference(what, i, got, wanted); });
      };
      expect("half", octet::encode_stochastic<F>(half, r).bits(), value_of<octet::float16>(bits));
      expect("bfloat16", octet::encode_stochastic<F>(brain, r).bits(), value_of<octet::bfloat16>(bits));
      expect("int", octet::encode_stochastic<F>(static_cast<int>(i), r).bits(), i);
    }
    INFO(table.about.name << " " << t.first);
    CHECK(t.differences == 0);
  });
}

TEST_CASE("stochastic rounding takes both neighbours as often as their distances say") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    const unsigned lower = table.largest / 2;
    for (const double fraction : {0.0, 0.0625, 0.3, 0.5, 0.9, 1.0}) {
      const double x = table.grid[lower] + fraction * table.steps[lower];
      constexpr int draws = 65536;
      int upper = 0, other = 0;
      for (std::uint32_t i = 0; i < draws; ++i) {
        const unsigned code = octet::encode_stochastic<F>(x, octet::philox_bits(42, i)).bits();
        upper += code == lower + 1;
        other += code != lower && code != lower + 1;
      }
      INFO(table.about.name << " at " << fraction);
      CHECK(other == 0);
      const double deviation = std::sqrt(draws * fraction * (1 - fraction));
      CHECK(std::fabs(upper - draws * fraction) <= 4 * deviation);
    }
  });
}

TEST_CASE("the least overflowing float is where rounding to nearest leaves the format") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    if constexpr (!F::is_signed)
      return;
    else {
      INFO(table.about.name);
      const std::uint32_t bits = octet::detail::overflow_bits<F>();
      for (const std::uint32_t step : {0u, 1u}) {
        const float x = bit_cast<float>(bits - step);
        const oracle::place<float> p = table.find(x);
        const bool over = p.far || (p.lower == table.largest && table.goes_up(p, oracle::mode::nearest_even, false));
        CHECK(over == (step == 0));
      }
    }
  });
}

// -- Constant expressions --------------------------------------------------------------------------------------

namespace {

using namespace octet;
static_assert(encode<e4m3>(1.0f).bits() == 0x38);
static_assert(encode<e4m3>(464.0f, overflow::nonfinite).bits() == 0x7E);
static_assert(encode<e4m3>(464.5f, overflow::nonfinite).bits() == 0x7F);
static_assert(encode<e4m3>(1e9).bits() == 0x7E);
static_assert(encode<e4m3>(-1e-30L).bits() == 0x80);
static_assert(encode<e5m2>(61440.0f, overflow::nonfinite).bits() == 0x7C);
static_assert(encode<e5m2>(61439.0f, overflow::nonfinite).bits() == 0x7B);
static_assert(encode<e5m2>(61440.0f, overflow::nonfinite, rounding::toward_zero).bits() == 0x7B);
static_assert(encode<e4m3fnuz>(-0.0f).bits() == 0x00);
static_assert(encode<e8m0>(3.0f).bits() == 0x81);
static_assert(encode<e8m0>(3.0f, overflow::saturate, rounding::toward_zero).bits() == 0x80);
static_assert(encode<e2m1>(5).bits() == 0x06);
static_assert(encode<e2m3>(float16::from_bits(0x3C00)).bits() == 0x08);
static_assert(encode<p3109_p4>(bfloat16::from_bits(0xFF80), overflow::nonfinite).bits() == 0xFF);
static_assert(encode<e4m3>(std::numeric_limits<double>::quiet_NaN()).bits() == 0x7F);
static_assert(encode<e8m0>(~std::uint64_t{0}).bits() == 191);
static_assert(encode_stochastic<e4m3>(1.0625f, 0x7FFFFFFFu).bits() == 0x38);
static_assert(encode_stochastic<e4m3>(1.0625f, 0x80000000u).bits() == 0x39);
static_assert(decode(e4m3::from_bits(0x7E)) == 448.0f);
static_assert(decode<double>(e5m2::from_bits(0x01)) == 0x1p-16);
static_assert(decode<int>(e5m2::from_bits(0xFC)) == std::numeric_limits<int>::min());
static_assert(decode<unsigned char>(e4m3::from_bits(0x7F)) == 0);
static_assert(decode<float16>(e4m3::from_bits(0x38)).bits() == 0x3C00);
static_assert(static_cast<long double>(e8m0::from_bits(0x7F)) == 1.0L);
static_assert(e5m2(e4m3(448)).bits() == 0x5F);
static_assert(static_cast<float>(float16(1.5f)) == 1.5f && bfloat16(3).bits() == 0x4040);

// -- What converts, and how ------------------------------------------------------------------------------------

enum unscoped { one = 1 };
enum class scoped { one = 1 };

template <class F, class T>
constexpr bool only_explicitly =
    std::is_constructible_v<F, T>&& std::is_constructible_v<T, F> && !std::is_convertible_v<F, T> &&
    !std::is_convertible_v<T, F> && !std::is_assignable_v<F&, T> && !std::is_assignable_v<T&, F>;

template <class F, class T>
constexpr bool not_at_all =
    !std::is_constructible_v<F, T> && !std::is_constructible_v<T, F> && !std::is_convertible_v<F, T> &&
    !std::is_convertible_v<T, F> && !std::is_assignable_v<F&, T> && !std::is_assignable_v<T&, F>;

template <class F>
constexpr bool converts_as_promised =
    only_explicitly<F, float>&& only_explicitly<F, double>&& only_explicitly<F, long double>&&
        only_explicitly<F, float16>&& only_explicitly<F, bfloat16>&& only_explicitly<F, char>&&
            only_explicitly<F, signed char>&& only_explicitly<F, unsigned char>&& only_explicitly<F, short>&&
                only_explicitly<F, unsigned short>&& only_explicitly<F, int>&& only_explicitly<F, unsigned>&&
                    only_explicitly<F, long>&& only_explicitly<F, unsigned long>&& only_explicitly<F, long long>&&
                        only_explicitly<F, unsigned long long>&& only_explicitly<F, wchar_t>&&
                            only_explicitly<F, char16_t>&& only_explicitly<F, char32_t>&&
#if OCTET_HAS_FLOAT16
                                only_explicitly<F, _Float16>&&
#endif
                                    not_at_all<F, bool>&& not_at_all<F, std::string>&& not_at_all<F, const char*>&&
                                        not_at_all<F, void*>&& not_at_all<F, std::nullptr_t>&& not_at_all<F, scoped> &&
    !std::is_constructible_v<F, unscoped>;

template <class... F>
constexpr bool each_pair_converts(format_list<F...>) {
  const auto with_all = [](auto tag) {
    using From = typename decltype(tag)::type;
    return ((std::is_same_v<F, From> || only_explicitly<F, From>)&&...);
  };
  return (converts_as_promised<F> && ...) && (with_all(format_tag<F>{}) && ...);
}
static_assert(each_pair_converts(all_formats{}));

}  // namespace
