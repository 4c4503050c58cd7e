// 2^24 floats and 2^24 doubles to all 13 formats, in every mode, by chance and in bulk, against the oracle.
// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstring>

#include "../formats.hpp"
#include "catch.hpp"
#include "octet/bulk.hpp"
#include "reference.hpp"

namespace {

constexpr std::size_t inputs = std::size_t{1} << 24, block = 1024;
constexpr unsigned pieces = 64;

template <class T>
using bits_of = octet::exact::bits_of<T>;

// Four kinds of inputs in turn: evenly over all bit patterns; any bits; exponents around those of the format; and
// values and ties of the format with up to two units either side. Both signs.
template <class T>
T input(std::size_t i, const oracle::table& table, oracle::random& random) {
  constexpr int width = 8 * sizeof(T);
  using bits = bits_of<T>;
  const std::uint64_t any = random();
  const bits sign = static_cast<bits>(static_cast<bits>(any & 1) << (width - 1));
  if (i % 4 == 0)
    return octet::bit_cast<T>(static_cast<bits>(static_cast<bits>(i) << (width - 24) | any >> (64 - width + 24)));
  if (i % 4 == 1) return octet::bit_cast<T>(static_cast<bits>(any >> (64 - width)));
  if (i % 4 == 2) {
    const int least = std::ilogb(table.steps[0]) - 3, most = std::ilogb(table.beyond) + 2;
    const int exponent = least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
    const auto x = static_cast<T>(std::ldexp(1 + static_cast<double>(any >> 12) * 0x1p-52, exponent));
    return octet::bit_cast<T>(static_cast<bits>(octet::bit_cast<bits>(x) | sign));
  }
  const auto code = static_cast<std::size_t>((any >> 8) % table.grid.size());
  const auto x = static_cast<T>(table.grid[code] + (any & 2 ? table.steps[code] / 2 : 0));
  const bits near = static_cast<bits>(octet::bit_cast<bits>(x) + (any >> 40) % 5 - 2);
  return octet::bit_cast<T>(static_cast<bits>(near ^ sign));
}

template <class F, class T>
tally run_piece(unsigned piece, const oracle::table& table) {
  tally t;
  oracle::random random(1000 + piece);
  std::vector<T> values(block);
  std::vector<oracle::place<T>> places(block);
  constexpr std::size_t each = inputs / pieces;
  for (std::size_t done = 0; done < each; done += block) {
    for (std::size_t i = 0; i < block; ++i) {
      values[i] = input<T>(piece * each + done + i, table, random);
      if (!std::isnan(values[i])) places[i] = table.find(std::fabs(values[i]));
    }
    const auto expect = [&](std::size_t i, unsigned got, unsigned wanted) {
      t.expect(got == wanted,
               [&] { return difference(table.about.name, octet::bit_cast<bits_of<T>>(values[i]), got, wanted); });
    };
    const auto wanted_code = [&](std::size_t i, auto direction, bool inward, bool negative, octet::overflow o) {
      const T x = values[i];
      if (std::isnan(x)) return table.nan_code(x);
      return table.finish(places[i], direction(places[i]), negative, inward, o == octet::overflow::saturate,
                          std::isinf(x));
    };
    for (const octet::overflow o : overflows) {
      for (const octet::rounding r : roundings) {
        const oracle::mode mode = oracle_mode(r);
        for (std::size_t i = 0; i < block; ++i) {
          const bool negative = std::signbit(values[i]) && table.sign != 0;
          const auto direction = [&](const oracle::place<T>& p) { return table.goes_up(p, mode, negative); };
          const unsigned wanted = wanted_code(i, direction, table.inward(mode, negative), negative, o);
          expect(i, octet::encode<F>(values[i], o, r).bits(), wanted);
        }
      }
      for (std::size_t i = 0; i < block; ++i) {
        const auto draw = static_cast<std::uint32_t>(random());
        const auto direction = [&](const oracle::place<T>& p) { return table.goes_up(p, draw); };
        const unsigned wanted = wanted_code(i, direction, false, std::signbit(values[i]) && table.sign != 0, o);
        expect(i, octet::encode_stochastic<F>(values[i], draw, o).bits(), wanted);
      }
    }
  }
  return t;
}

// The row in use against one value at a time.
template <class F, class T>
tally run_bulk_piece(unsigned piece, const oracle::table& table) {
  tally t;
  oracle::random random(2000 + piece);
  std::vector<T> values(block);
  std::vector<F> codes(block);
  constexpr std::size_t each = inputs / pieces;
  for (std::size_t done = 0; done < each; done += block) {
    for (std::size_t i = 0; i < block; ++i) values[i] = input<T>(piece * each + done + i, table, random);
    for (const octet::overflow o : overflows) {
      octet::encode(values.data(), codes.data(), block, o);
      for (std::size_t i = 0; i < block; ++i) {
        const unsigned got = codes[i].bits(), wanted = octet::encode<F>(values[i], o).bits();
        t.expect(got == wanted,
                 [&] { return difference(table.about.name, octet::bit_cast<bits_of<T>>(values[i]), got, wanted); });
      }
    }
  }
  return t;
}

template <class Piece>
void check(const std::string& name, Piece&& piece, std::uint64_t comparisons) {
  const auto start = std::chrono::steady_clock::now();
  const unsigned every = reference::every();
  std::vector<tally> tallies(pieces);
  reference::share(pieces, [&](unsigned i) {
    if (i % every == 0) tallies[i] = piece(i);
  });
  tally all;
  for (const tally& t : tallies) all.add(t);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s: %llu comparisons, %llu differences, %.1f s\n", name.c_str(),
              static_cast<unsigned long long>(all.compared), static_cast<unsigned long long>(all.differences), seconds);
  std::fflush(stdout);
  INFO(name << " " << all.first);
  CHECK(all.differences == 0);
  CHECK(all.compared == (pieces + every - 1) / every * (inputs / pieces) * comparisons);
}

}  // namespace

TEST_CASE("a stratified sample encodes as the oracle does, in every mode and by chance") {
  for_each_format([](auto tag, const oracle::table& table) {
    using F = typename decltype(tag)::type;
    const std::string name = table.about.name;
    check(
        name + " from float", [&](unsigned i) { return run_piece<F, float>(i, table); }, 12);
    check(
        name + " from double", [&](unsigned i) { return run_piece<F, double>(i, table); }, 12);
  });
}

TEST_CASE("a stratified sample encodes in bulk as it does one by one, on every row that runs here") {
  for (std::size_t row = 0; row < octet::simd::row_count; ++row) {
    if (!octet::simd::row_runs_here(row)) continue;
    octet::simd::pick_row(row);
    for_each_format([&](auto tag, const oracle::table& table) {
      using F = typename decltype(tag)::type;
      const std::string name = std::string(table.about.name) + ", row " + octet::simd::row_name(row);
      check(
          name + " from float", [&](unsigned i) { return run_bulk_piece<F, float>(i, table); }, 2);
      check(
          name + " from double", [&](unsigned i) { return run_bulk_piece<F, double>(i, table); }, 2);
    });
  }
  octet::simd::pick_row(octet::simd::row_count);
}
