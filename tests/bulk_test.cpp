// Many values: bulk equals one by one, at every length and alignment and on every row; ranges, amax, bad arguments.
// SPDX-License-Identifier: MIT
#include "octet/bulk.hpp"

#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "formats.hpp"

namespace {

using octet::bit_cast;
using octet::nonfinite;
using octet::overflow;
using octet::rounding;

// Runs a test on every row of this machine.
template <class Test>
void on_every_row(Test&& test) {
  for (std::size_t row = 0; row < octet::simd::row_count; ++row) {
    if (!octet::simd::row_runs_here(row)) continue;
    octet::simd::pick_row(row);
    INFO("row " << octet::simd::row_name(row));
    test();
  }
  octet::simd::pick_row(octet::simd::row_count);
}

// What is tested, behind pointers, so that each loop is compiled once per source type.
template <class T>
struct conversions {
  void (*encode)(const T*, std::uint8_t*, std::size_t, overflow);
  std::uint8_t (*encode_one)(T, overflow);
  void (*decode)(const std::uint8_t*, T*, std::size_t);
  T (*decode_one)(std::uint8_t);
};

template <class F, class T>
conversions<T> conversions_of() {
  return {[](const T* in, std::uint8_t* out, std::size_t n, overflow o) {
            octet::encode(in, octet::as_codes<F>(out), n, o);
          },
          [](T x, overflow o) { return octet::encode<F>(x, o).bits(); },
          [](const std::uint8_t* in, T* out, std::size_t n) { octet::decode(octet::as_codes<F>(in), out, n); },
          [](std::uint8_t code) { return octet::decode<T>(F::from_bits(code)); }};
}

// Calls test(conversions<T>, table, name of T) for every format and source type.
template <class Test>
void for_each_conversion(Test&& test) {
  for_each_kernel_format([&](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    test(conversions_of<F, float>(), table, "float");
    test(conversions_of<F, double>(), table, "double");
    test(conversions_of<F, octet::float16>(), table, "half");
    test(conversions_of<F, octet::bfloat16>(), table, "bfloat16");
  });
}

// Values of all sizes around those of the format, its ties, zeros, infinities and NaNs of both signs.
template <class T>
std::vector<T> values_for(const oracle::table& table, std::size_t n, std::uint64_t seed) {
  oracle::random random(seed);
  std::vector<T> values(n);
  for (T& x : values) {
    const std::uint64_t any = random();
    const std::size_t code = (any >> 8) % table.grid.size();
    const double sign = (any & 1) != 0 ? -1 : 1;
    double y = table.grid[code] + table.steps[code] * static_cast<double>((any >> 32) % 9) / 8;
    if (any % 16 == 2) y = table.beyond * static_cast<double>(any >> 54);
    if (any % 32 == 4) y = std::numeric_limits<double>::infinity();
    if (any % 32 == 6) y = 0;
    if (any % 32 == 8) y = table.steps[0] * 0x1p-3;
    x = static_cast<T>(sign * y);
    if (any % 32 == 10) {  // any bits at all, NaNs among them
      const auto bits = static_cast<octet::exact::bits_of<T>>(random());
      x = octet::float_traits<T>::from_bits(
          any % 64 == 10 ? bits : static_cast<octet::exact::bits_of<T>>(bits | octet::float_traits<T>::infinity));
    }
  }
  return values;
}

constexpr std::size_t most = 300, margin = 64;
constexpr std::uint8_t guard = 0xA5;

}  // namespace

TEST_CASE("bulk encode gives the codes of encode at every length up to 300 and alignment, and writes nothing else") {
  on_every_row([] {
    for_each_conversion([](const auto& c, const oracle::table& table, const char* type) {
      tally t;
      const auto values = values_for<decltype(c.decode_one(0))>(table, most + 8, 1);
      std::vector<std::uint8_t> wanted(most + 8), out(most + 2 * margin + 8);
      for (const overflow o : overflows) {
        for (std::size_t i = 0; i < values.size(); ++i) wanted[i] = c.encode_one(values[i], o);
        for (std::size_t n = 0; n <= most; ++n) {
          const std::size_t from = n % 7, to = margin + (n * 5 + 3) % 8;
          std::memset(out.data(), guard, out.size());
          c.encode(values.data() + from, out.data() + to, n, o);
          for (std::size_t i = 0; i < out.size(); ++i) {
            const std::uint8_t right = i < to || i >= to + n ? guard : wanted[from + i - to];
            t.expect(out[i] == right, [&] { return difference(table.about.name, n << 16 | i, out[i], right); });
          }
        }
      }
      INFO("from " << type << " to " << t.first);
      CHECK(t.differences == 0);
    });
  });
}

TEST_CASE("bulk decode gives the values of decode at every length up to 300 and alignment, and writes nothing else") {
  on_every_row([] {
    for_each_conversion([](const auto& c, const oracle::table& table, const char* type) {
      using T = decltype(c.decode_one(0));
      using bits = octet::exact::bits_of<T>;
      tally t;
      constexpr auto untouched = static_cast<bits>(0xA5A5A5A5A5A5A5A5u);
      std::vector<std::uint8_t> codes(most + 8);
      oracle::random random(2);
      for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i < 256 ? i : random());
      std::vector<T> out(most + 2 * margin + 8);
      for (std::size_t n = 0; n <= most; ++n) {
        const std::size_t from = n % 7, to = margin + (n * 5 + 3) % 8;
        for (T& x : out) x = octet::float_traits<T>::from_bits(untouched);
        c.decode(codes.data() + from, out.data() + to, n);
        for (std::size_t i = 0; i < out.size(); ++i) {
          const bits right =
              i < to || i >= to + n ? untouched : octet::float_traits<T>::to_bits(c.decode_one(codes[from + i - to]));
          const bits got = octet::float_traits<T>::to_bits(out[i]);
          t.expect(got == right, [&] { return difference(table.about.name, n << 16 | i, got, right); });
        }
      }
      INFO("to " << type << " from " << t.first);
      CHECK(t.differences == 0);
    });
  });
}

TEST_CASE("every half and bfloat16, and many floats and doubles, encode in bulk as one by one") {
  on_every_row([] {
    for_each_conversion([](const auto& c, const oracle::table& table, const char* type) {
      using T = decltype(c.decode_one(0));
      tally t;
      std::vector<T> values = values_for<T>(table, 65536, 3);
      if (sizeof(T) == 2)
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = octet::float_traits<T>::from_bits(static_cast<octet::exact::bits_of<T>>(i));
      std::vector<std::uint8_t> codes(values.size());
      for (const overflow o : overflows) {
        c.encode(values.data(), codes.data(), values.size(), o);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::uint8_t wanted = c.encode_one(values[i], o);
          t.expect(codes[i] == wanted, [&] { return difference(table.about.name, i, codes[i], wanted); });
        }
      }
      INFO("from " << type << " to " << t.first);
      CHECK(t.differences == 0);
    });
  });
}

TEST_CASE("one NaN or infinity among numbers changes its own code only, in every lane") {
  on_every_row([] {
    for_each_conversion([](const auto& c, const oracle::table& table, const char* type) {
      using T = decltype(c.decode_one(0));
      using S = octet::float_traits<T>;
      using bits = typename S::bits_type;
      tally t;
      constexpr std::size_t n = 133;
      const std::array<bits, 6> specials = {static_cast<bits>(S::infinity | 1),
                                            static_cast<bits>(S::sign_mask - 1),
                                            static_cast<bits>(S::sign_mask | S::infinity | 1),
                                            static_cast<bits>(~bits{0}),
                                            S::infinity,
                                            static_cast<bits>(S::sign_mask | S::infinity)};
      std::vector<std::uint8_t> codes(n);
      for (const bits special : specials) {
        for (std::size_t lane = 0; lane < n; ++lane) {
          std::vector<T> values(n, static_cast<T>(1.0f));
          values[lane] = S::from_bits(special);
          for (const overflow o : overflows) {
            c.encode(values.data(), codes.data(), n, o);
            for (std::size_t i = 0; i < n; ++i) {
              const std::uint8_t wanted = c.encode_one(values[i], o);
              t.expect(codes[i] == wanted, [&] { return difference(table.about.name, i, codes[i], wanted); });
            }
          }
        }
      }
      INFO("from " << type << " to " << t.first);
      CHECK(t.differences == 0);
    });
  });
}

TEST_CASE("bulk encode takes every rounding mode") {
  for_each_kernel_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    const std::vector<double> values = values_for<double>(table, 999, 4);
    std::vector<F> codes(values.size());
    tally t;
    for (const overflow o : overflows) {
      for (const rounding r : roundings) {
        octet::encode(values.data(), codes.data(), values.size(), o, r);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const unsigned wanted = table.encode(values[i], oracle_mode(r), o == overflow::saturate);
          t.expect(codes[i].bits() == wanted, [&] { return difference(table.about.name, i, codes[i].bits(), wanted); });
        }
      }
    }
    INFO(t.first);
    CHECK(t.differences == 0);
  });
}

TEST_CASE("bulk stochastic rounding draws word first_index + i for value i, however the array is cut") {
  for_each_kernel_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    const std::vector<float> values = values_for<float>(table, 257, 5);
    tally t;
    for (const std::uint64_t first :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{6}, (std::uint64_t{1} << 34) - 3}) {
      std::vector<F> whole(values.size()), cut(values.size());
      octet::encode_stochastic(values.data(), whole.data(), values.size(), 99, first);
      for (std::size_t i = 0, n = 1; i < values.size(); i += n, n = std::min(n + 1, values.size() - i))
        octet::encode_stochastic(values.data() + i, cut.data() + i, n, 99, first + i, overflow::saturate);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const unsigned wanted = octet::encode_stochastic<F>(values[i], octet::philox_bits(99, first + i)).bits();
        t.expect(whole[i].bits() == wanted && cut[i].bits() == wanted,
                 [&] { return difference(table.about.name, i, whole[i].bits(), wanted); });
      }
    }
    INFO(t.first);
    CHECK(t.differences == 0);
  });
}

namespace {

template <class T, class Result>
void check_amax() {
  using S = octet::float_traits<T>;
  using bits = typename S::bits_type;
  static_assert(std::is_same_v<decltype(octet::amax(static_cast<const T*>(nullptr), 0)), Result>);
  const T nan = S::from_bits(static_cast<bits>(~bits{0})),
          infinity = S::from_bits(static_cast<bits>(S::infinity | S::sign_mask));
  tally t;
  oracle::random random(6);
  std::vector<T> values(most + 8);
  for (T& x : values)
    x = static_cast<T>(
        std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -60 - static_cast<int>(random() % 8)));
  const auto expect = [&](const T* p, std::size_t n) {
    Result wanted = 0, got = octet::amax(p, n);
    for (std::size_t i = 0; i < n; ++i) wanted = std::max(wanted, std::fabs(static_cast<Result>(p[i])));
    t.expect(got == wanted, [&] { return difference("amax", n, 0, 0); });
  };
  for (std::size_t n = 0; n <= most; ++n) expect(values.data() + n % 7, n);
  // The largest in every lane, then NaN and infinity in every lane.
  constexpr std::size_t n = 133;
  for (std::size_t lane = 0; lane < n; ++lane) {
    std::vector<T> some(values.begin(), values.begin() + n);
    some[lane] = static_cast<T>(-1000.0f);
    expect(some.data(), n);
    some[(lane + 1) % n] = infinity;
    const bool infinite = octet::amax(some.data(), n) == std::numeric_limits<Result>::infinity() &&
                          octet::amax(some.data(), n, nonfinite::ignore) == 1000;
    some[(lane + 2) % n] = nan;
    const bool unordered = std::isnan(octet::amax(some.data(), n)) &&
                           std::isnan(octet::amax(some.data(), n, nonfinite::propagate)) &&
                           octet::amax(some.data(), n, nonfinite::ignore) == 1000;
    t.expect(infinite && unordered, [&] { return difference("lane", lane, infinite, unordered); });
  }
  INFO(t.first);
  CHECK(t.differences == 0);
  const std::vector<T> zeros(9, static_cast<T>(-0.0f)), nans(9, nan);
  CHECK(octet::amax(zeros) == 0);
  CHECK(!std::signbit(octet::amax(zeros)));
  CHECK(std::isnan(octet::amax(nans)));
  CHECK(octet::amax(nans, nonfinite::ignore) == 0);
  CHECK(octet::amax(static_cast<const T*>(nullptr), 0) == 0);
  const T least = S::from_bits(1);
  CHECK(octet::amax(&least, 1) == static_cast<Result>(least));
#if OCTET_EXCEPTIONS
  CHECK_THROWS_AS(octet::amax(nans, nonfinite::reject), std::invalid_argument);
  CHECK_THROWS_AS(octet::amax(&infinity, 1, nonfinite::reject), std::invalid_argument);
  CHECK_THROWS_AS(octet::amax(static_cast<const T*>(nullptr), 1), std::invalid_argument);
  CHECK(octet::amax(zeros, nonfinite::reject) == 0);
#endif
}

}  // namespace

TEST_CASE("amax is the largest magnitude, NaN and infinity by policy, at every length and in every lane") {
  on_every_row([] {
    check_amax<float, float>();
    check_amax<double, double>();
    check_amax<octet::float16, float>();
    check_amax<octet::bfloat16, float>();
  });
}

TEST_CASE("contiguous ranges of equal length convert, of whatever kind they are") {
  const std::vector<float> values = {1, -2, 500, 0.001f};
  std::array<octet::e4m3, 4> codes{};
  octet::encode(values, codes);
  CHECK(codes[0].bits() == 0x38);
  CHECK(codes[1].bits() == 0xC0);
  CHECK(codes[2].bits() == 0x7E);
  CHECK(codes[3].bits() == 0x01);
  octet::encode(values, codes, overflow::nonfinite);
  CHECK(codes[2].bits() == 0x7F);
  octet::encode(values, codes, overflow::nonfinite, rounding::toward_zero);
  CHECK(codes[2].bits() == 0x7E);
  CHECK(codes[3].bits() == 0x00);
  octet::encode_stochastic(values, codes, 1);
  CHECK(codes[0].bits() == 0x38);
  double back[4] = {};
  octet::decode(codes, back);
  CHECK(back[1] == -2.0);
  const double array[] = {-7, 3};
  CHECK(octet::amax(array) == 7.0);
  std::vector<octet::e5m2> none;
  octet::encode(std::vector<double>{}, none);
  octet::decode(none, std::vector<float>{});
  CHECK(octet::amax(std::vector<float>{}) == 0);
}

TEST_CASE("a byte buffer seen as codes is the same memory") {
  std::uint8_t bytes[64];
  std::memset(bytes, 0, sizeof bytes);
  octet::e4m3* codes = octet::as_codes<octet::e4m3>(bytes);
  for (unsigned i = 0; i < 64; ++i) codes[i] = octet::e4m3::from_bits(static_cast<std::uint8_t>(i));
  unsigned sum = 0;
  for (const std::uint8_t byte : bytes) sum += byte;
  CHECK(sum == 63 * 32);
  bytes[5] = 0x38;
  CHECK(codes[5].bits() == 0x38);
  const void* fixed = bytes;
  CHECK(octet::as_codes<octet::e4m3>(fixed)[5] == octet::e4m3::from_bits(0x38));
  CHECK(static_cast<const void*>(octet::as_codes<octet::e5m2>(bytes)) == fixed);
  std::uint32_t words[2] = {0x38383838, 0};
  const octet::e4m3* seen = octet::as_codes<octet::e4m3>(words);
  CHECK(octet::decode(seen[2]) == 1.0f);
  words[0] = 0x40404040;
  CHECK(octet::decode(seen[2]) == 2.0f);
  CHECK(octet::as_codes<octet::e4m3>(static_cast<void*>(nullptr)) == nullptr);
}

TEST_CASE("nothing to do is done, with any pointers") {
  octet::encode(static_cast<const float*>(nullptr), static_cast<octet::e4m3*>(nullptr), 0);
  octet::encode(static_cast<const float*>(nullptr), static_cast<octet::e4m3*>(nullptr), 0, overflow::saturate,
                rounding::upward);
  octet::encode_stochastic(static_cast<const float*>(nullptr), static_cast<octet::e4m3*>(nullptr), 0, 1);
  octet::decode(static_cast<const octet::e4m3*>(nullptr), static_cast<float*>(nullptr), 0);
  float x = 3;
  octet::encode(&x, octet::as_codes<octet::e4m3>(&x), 0);
  CHECK(x == 3);
}

#if OCTET_EXCEPTIONS

namespace {

std::string last_message;
void remember(const char* message) { last_message = message; }

// Throws std::invalid_argument, and says so to the handler first.
template <class Call>
void check_error(Call&& call, const char* part) {
  last_message.clear();
  const octet::error_handler before = octet::set_error_handler(&remember);
  std::string text;
  try {
    call();
  } catch (const std::invalid_argument& e) {
    text = e.what();
  }
  octet::set_error_handler(before);
  INFO(text);
  CHECK(!text.empty());
  CHECK(text == last_message);
  CHECK(text.find(part) != std::string::npos);
  CHECK(text.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE(
    "a null pointer, an overlap, a length that no memory holds and unequal ranges are errors, and nothing is written") {
  std::vector<float> values(8, 1.0f);
  std::vector<octet::e4m3> codes(8, octet::e4m3::from_bits(0x11));
  float* none = nullptr;
  octet::e4m3* no_codes = nullptr;
  constexpr overflow o = overflow::saturate;
  check_error([&] { octet::encode(none, codes.data(), 8); }, "null");
  check_error([&] { octet::encode(values.data(), no_codes, 8); }, "null");
  check_error([&] { octet::encode(none, codes.data(), 8, o, rounding::upward); }, "null");
  check_error([&] { octet::encode(values.data(), no_codes, 8, o, rounding::upward); }, "null");
  check_error([&] { octet::encode_stochastic(none, codes.data(), 8, 1); }, "null");
  check_error([&] { octet::encode_stochastic(values.data(), no_codes, 8, 1); }, "null");
  check_error([&] { octet::decode(no_codes, values.data(), 8); }, "null");
  check_error([&] { octet::decode(codes.data(), none, 8); }, "null");
  check_error([&] { octet::encode(values.data(), codes.data(), ~std::size_t{0} / 2); }, "memory");
  check_error([&] { octet::decode(codes.data(), values.data(), ~std::size_t{0} / 2); }, "memory");

  const std::vector<octet::e4m3> few(7);
  std::vector<float> more(9);
  check_error([&] { octet::encode(values, std::vector<octet::e4m3>(7)); }, "8");
  check_error([&] { octet::encode(more, codes, o); }, "9");
  check_error([&] { octet::encode(more, codes, o, rounding::upward); }, "9");
  check_error([&] { octet::encode_stochastic(more, codes, 1); }, "9");
  check_error([&] { octet::decode(few, values); }, "7");
  check_error([&] { octet::decode(codes, more); }, "8");

  // Input and output in one buffer: the same place, and one byte into each other from either side.
  std::vector<unsigned char> buffer(4 * 8 + 16, 0);
  float* const in = reinterpret_cast<float*>(buffer.data() + 8);
  for (int shift = -7; shift < 32; ++shift) {
    octet::e4m3* const out = octet::as_codes<octet::e4m3>(buffer.data() + 8 + shift);
    check_error([&] { octet::encode(in, out, 8); }, "overlap");
    check_error([&] { octet::encode(in, out, 8, o, rounding::upward); }, "overlap");
    check_error([&] { octet::encode_stochastic(in, out, 8, 1); }, "overlap");
    check_error([&] { octet::decode(out, in, 8); }, "overlap");
  }
  int written = 0;
  for (const unsigned char byte : buffer) written += byte != 0;
  for (const octet::e4m3 q : codes) written += q.bits() != 0x11;
  for (const float x : values) written += x != 1.0f;
  CHECK(written == 0);
  // Side by side is apart.
  for (std::size_t i = 0; i < 8; ++i) std::memcpy(buffer.data() + 8 + 4 * i, &values[i], 4);
  octet::encode(in, octet::as_codes<octet::e4m3>(buffer.data()), 8);
  octet::encode(in, octet::as_codes<octet::e4m3>(buffer.data() + 40), 8);
  CHECK(buffer[7] == 0x38);
  CHECK(buffer[40] == 0x38);
}

TEST_CASE("an installed handler may leave by an exception of its own") {
  struct own {};
  const octet::error_handler before = octet::set_error_handler([](const char*) { throw own(); });
  CHECK_THROWS_AS(octet::amax(static_cast<const float*>(nullptr), 1), own);
  CHECK(octet::set_error_handler(before) != nullptr);
  CHECK_THROWS_AS(octet::amax(static_cast<const float*>(nullptr), 1), std::invalid_argument);
}

#endif

TEST_CASE("a row that does not exist means the best one") {
  octet::simd::pick_row(octet::simd::row_count);
  const float x = 1;
  octet::e4m3 q{};
  octet::encode(&x, &q, 1);
  CHECK(q.bits() == 0x38);
  CHECK(octet::simd::row_runs_here(octet::simd::row_count - 1));
  CHECK(std::string(octet::simd::row_name(octet::simd::row_count - 1)) == "scalar");
}
