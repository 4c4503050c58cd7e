// Scaled conversion in every row that runs here against the scalar row: any bits as values, codes and descales.
// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "formats.hpp"
#include "octet/quantize.hpp"

using octet::descale;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

template <class F, class T>
class row_comparison {
  using bits = typename octet::float_traits<T>::bits_type;
  using kernels = octet::simd::scaled_conversion<F, T>;
  oracle::random random;
  tally& results;
  std::size_t n = 0;
  std::vector<T> values;
  std::vector<F> codes;
  std::vector<descale> descales;
  std::vector<octet::scale> multipliers;

  // A significand of any bits, or next to one of few bits, whose products with codes are ties.
  float any_descale(int exponent) {
    const std::uint64_t any = random();
    const auto whole = static_cast<float>(any % 8388608), few = static_cast<float>(any >> 40 & ((2u << any % 14) - 1));
    const float significand = (any >> 32 & 1) != 0 ? 1 + whole / 8388608 : 1 + few / static_cast<float>(2u << any % 14);
    return std::ldexp(std::nextafter(significand, (any >> 33 & 1) != 0 ? significand : 1.5f), exponent);
  }
  // Near 1, of any size, and at the ends of what the vectors take.
  float any_descale_of_kind(std::uint64_t kind) {
    const int ends[] = {-40, 39, -41, 40, F::mantissa_bits - F::least_exponent - 126, 127, -149};
    if (kind % 9 == 0) return any_descale(static_cast<int>(random() % 20) - 10);
    return any_descale(kind % 9 == 1 ? static_cast<int>(random() % 252) - 126 : ends[kind % 9 - 2]);
  }

  void make(std::uint64_t trial) {
    n = static_cast<std::size_t>(trial % 8 == 0 ? 256 + random() % 200 : random() % 132);
    values.assign(n, T(0.0f));
    codes.clear();
    for (T& v : values) {
      const std::uint64_t any = random();
      v = trial % 3 == 0
              ? octet::float_traits<T>::from_bits(static_cast<bits>(any))
              : T(std::ldexp(static_cast<float>(static_cast<std::int32_t>(any)), static_cast<int>(any >> 60 & 7) - 31));
    }
    if (n > 5 && trial % 2 == 0) {
      values[1] = T(infinity), values[2] = T(-infinity), values[3] = T(0.0f);
      values[n - 1] = octet::float_traits<T>::from_bits(static_cast<bits>(octet::float_traits<T>::infinity + 1));
      if (trial % 10 == 0) values[n / 2] = octet::float_traits<T>::from_bits(7);
    }
    for (std::size_t i = 0; i < n; ++i) codes.push_back(F::from_bits(static_cast<std::uint8_t>(random())));
  }

  template <class Result>
  void expect_same(const char* what, std::size_t row, const Result* got, const Result* wanted, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t a = 0, b = 0;
      std::memcpy(&a, got + i, sizeof(Result));
      std::memcpy(&b, wanted + i, sizeof(Result));
      results.expect(a == b, [&] {
        return std::string(octet::simd::row_name(row)) + ", " + difference(what, i, a, b) + " of " + std::to_string(n);
      });
    }
  }
  // The results of run(row's kernels, n results with one behind them).
  template <class Result, class Run>
  void expect_same_of(const char* what, Result guard, Run&& run) {
    std::vector<Result> wanted(n + 1, guard);
    octet::simd::pick_row(octet::simd::row_count - 1);
    run(octet::simd::scales<F, T>(), wanted.data());
    for (std::size_t row = 0; row + 1 < octet::simd::row_count; ++row) {
      if (!octet::simd::row_runs_here(row)) continue;
      std::vector<Result> got(n + 1, guard);
      octet::simd::pick_row(row);
      run(octet::simd::scales<F, T>(), got.data());
      expect_same(what, row, got.data(), wanted.data(), n + 1);
    }
  }

  void measure(const octet::group_scale& s, const std::vector<F>& measured, std::size_t first) {
    std::vector<octet::simd::row_losses> losses(octet::simd::row_count);
    for (std::size_t row = octet::simd::row_count; row-- > 0;) {
      octet::simd::row_losses& got = losses[row];
      const octet::simd::row_losses& wanted = losses.back();
      if (!octet::simd::row_runs_here(row)) continue;
      octet::simd::pick_row(row);
      got.signal[first % 8] = 1, got.relative[3] = 0.1, got.clipped = 5;
      octet::simd::scales<F, T>().measure(values.data(), measured.data(), n, first, s, got);
      const std::size_t counts[] = {got.not_finite, got.clipped, got.flushed, got.poisoned, got.compared};
      const std::size_t right[] = {wanted.not_finite, wanted.clipped, wanted.flushed, wanted.poisoned, wanted.compared};
      expect_same("count", row, counts, right, 5);
      expect_same("signal", row, got.signal, wanted.signal, 8);
      expect_same("error", row, got.error, wanted.error, 8);
      expect_same("relative error", row, got.relative, wanted.relative, 8);
    }
  }

  void compare(octet::scaling how) {
    const octet::group_scale s = octet::scale_of(descales[0], how);
    const F guard = F::from_bits(1);
    std::vector<F> quantized(n);
    octet::simd::scalar::quantize<F, T>(values.data(), quantized.data(), n, s, false);
    expect_same_of("quantize", guard, [&](const kernels& k, F* out) { k.quantize(values.data(), out, n, s, false); });
    bits wanted = 0;
    if (n > 0) wanted = octet::simd::scalar::amax(values.data(), n, false);
    for (const bool streams : {false, true})
      expect_same_of("quantize_and_amax", guard, [&](const kernels& k, F* out) {
        const bits largest = k.quantize_and_amax(values.data(), out, n, s, values.data(), n, streams);
        results.expect(largest == wanted, [&] { return difference("amax", n, largest, wanted); });
      });
    multipliers.clear();
    for (const descale d : descales) multipliers.push_back(octet::scale_of(d, how).multiplier);
    const octet::simd::group_scales each{descales.data(), multipliers.data(), how == octet::scaling::divide};
    expect_same_of("quantize_each", guard,
                   [&](const kernels& k, F* out) { k.quantize_each(values.data(), out, n, each); });
    for (std::size_t width = 16; octet::simd::is_run_width(width) && width <= n; width *= 2)
      expect_same_of("quantize_runs", guard, [&](const kernels& k, F* out) {
        k.quantize_runs(values.data(), out, width, n / width, each, false);
      });
    for (std::size_t first : {0u, 3u, 8u, 13u}) measure(s, quantized, first);
    measure(s, codes, 0);
  }

 public:
  row_comparison(std::uint64_t seed, tally& t) : random(seed), results(t) {
    for (std::uint64_t trial = 0; trial < 720; ++trial) {
      make(trial);
      descales.assign(n + 1, descale(1));
      descales[0] = descale(any_descale_of_kind(trial));
      for (std::size_t i = 1; i < n; ++i) descales[i] = descale(any_descale(static_cast<int>(random() % 60) - 30));
      if (trial % 4 == 0 && n > 0)
        for (std::uint64_t kind = 0; kind < 9; ++kind)
          descales[static_cast<std::size_t>(random() % n)] = descale(any_descale_of_kind(kind));
      for (octet::scaling how : {octet::scaling::divide, octet::scaling::multiply}) compare(how);

      // Descales are taken as they are on the way out.
      const float anything[] = {quiet_nan, infinity, 0, -3.7f, 0x1p-149f};
      if (trial % 16 == 0) descales[0] = descale(anything[trial / 16 % 5]);
      if (trial % 16 == 1) descales[n / 2] = descale(anything[trial / 16 % 5]);
      expect_same_of("dequantize", T(1.0f),
                     [&](const kernels& k, T* out) { k.dequantize(codes.data(), out, n, descales[0], false); });
      expect_same_of("dequantize_each", T(1.0f),
                     [&](const kernels& k, T* out) { k.dequantize_each(codes.data(), out, n, descales.data()); });
      std::vector<bits> so_far(n);
      for (bits& b : so_far) b = static_cast<bits>(random() & static_cast<bits>(octet::float_traits<T>::sign_mask - 1));
      expect_same_of("amax_each", bits{3}, [&](const kernels&, bits* out) {
        if (n > 0) std::memcpy(out, so_far.data(), n * sizeof(bits));
        octet::simd::reduces<T>().amax_each(values.data(), out, n);
      });
      for (std::size_t width = 16; octet::simd::is_run_width(width) && width <= n; width *= 2)
        expect_same_of("amax_runs", bits{3}, [&](const kernels&, bits* out) {
          octet::simd::reduces<T>().amax_runs(values.data(), width, n / width, out, trial % 2 == 0);
        });
    }
    octet::simd::pick_row(octet::simd::row_count);
  }
};

}  // namespace

TEST_CASE("Every row scales, restores and measures any values by any descale as the scalar row does") {
  tally results;
  row_comparison<octet::e4m3, float>(1, results);
  row_comparison<octet::e5m2fnuz, octet::bfloat16>(8, results);
#ifndef OCTET_TEST_FEW_FORMATS
  row_comparison<octet::e4m3, octet::float16>(2, results);
  row_comparison<octet::e4m3, octet::bfloat16>(3, results);
  row_comparison<octet::e5m2, float>(4, results);
  row_comparison<octet::e5m2, octet::bfloat16>(6, results);
  row_comparison<octet::e4m3fnuz, octet::float16>(7, results);
  row_comparison<octet::e2m1, octet::bfloat16>(9, results);
  row_comparison<octet::p3109_p4, float>(12, results);
  row_comparison<octet::fp8<6, 1>, float>(13, results);
#endif
  std::uint64_t rows = 0;
  for (std::size_t row = 0; row < octet::simd::row_count; ++row) rows += octet::simd::row_runs_here(row) ? 1 : 0;
  CAPTURE(results.first, rows);
  CHECK(results.differences == 0);
  CHECK(results.compared > 400000 * rows);  // two formats at the least
}

namespace {

// Amaxes of any bits (a sign and NaN among them), mostly normal ones, so that whole vectors of them are.
float any_amax(oracle::random& random, std::uint64_t trial) {
  const std::uint64_t any = random();
  if (any % 64 == 0 && trial % 4 == 0)
    return octet::float_traits<float>::from_bits(static_cast<std::uint32_t>(any >> 32));
  return std::ldexp(1 + static_cast<float>(any >> 40) / 0x1p24f, static_cast<int>(any >> 8 & 0xFF) % 252 - 126);
}

template <class F>
void compare_scales(const octet::scale_rule& rule, std::uint64_t trial, oracle::random& random, tally& results) {
  float amax[70];
  const std::size_t n = static_cast<std::size_t>(random() % 70);
  for (float& a : amax) a = any_amax(random, trial);
  for (std::size_t row = 0; row < octet::simd::row_count; ++row) {
    if (!octet::simd::row_runs_here(row)) continue;
    octet::simd::pick_row(row);
    descale stored[70];
    octet::scale multipliers[70];
    for (std::size_t i = 0; i < 70; ++i) stored[i] = descale(3), multipliers[i] = octet::scale(3);
    octet::simd::scales<F, float>().scales_of(amax, n, rule, stored, multipliers);
    for (std::size_t i = 0; i < 70; ++i) {
      const octet::group_scale s =
          i < n ? octet::scale_of<F>(amax[i], rule) : octet::group_scale{descale(3), octet::scale(3), false};
      results.expect(std::memcmp(&stored[i], &s.stored, sizeof(float)) == 0 &&
                         std::memcmp(&multipliers[i], &s.multiplier, sizeof(float)) == 0,
                     [&] { return std::string(octet::simd::row_name(row)) + ": scale of " + std::to_string(amax[i]); });
    }
  }
  octet::simd::pick_row(octet::simd::row_count);
}

}  // namespace

TEST_CASE("Every row finds the scales of many groups as scale_of finds each") {
  tally results;
  oracle::random random(21);
  for (std::uint64_t trial = 0; trial < 1 << 13; ++trial) {
    octet::scale_rule rule(static_cast<octet::descale_form>(trial % 8), static_cast<octet::scaling>(trial / 8 % 3));
    const std::uint64_t any = random();
    if (any % 3 == 0) rule.margin = static_cast<int>(any >> 8 & 0xFF) % 253 - 126;
    if (any % 5 == 0) rule.largest = std::fabs(any_amax(random, 1));
    if (any % 7 == 0) rule.floor = std::fabs(any_amax(random, 1));
    if (any % 11 == 0) rule.cap = std::fabs(any_amax(random, 1));
    compare_scales<octet::e4m3>(rule, trial, random, results);
    compare_scales<octet::e5m2fnuz>(rule, trial, random, results);
    compare_scales<octet::e2m1>(rule, trial, random, results);
  }
  CAPTURE(results.first);
  CHECK(results.differences == 0);
  CHECK(results.compared > 1000000);
}
