// What a quantization lost, against sums in long double, and the promise that parts add up to the whole to the bit.
// SPDX-License-Identifier: MIT
#include "octet/statistics.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "octet/quantize.hpp"
#include "oracle.hpp"

using octet::matrix_view;

namespace {

std::vector<float> spread_values(std::size_t n) {
  oracle::random random(7);
  std::vector<float> x(n);
  for (float& v : x) {
    const std::uint64_t bits = random();
    v = std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)), -31 - static_cast<int>(bits >> 40 & 31));
  }
  return x;
}

}  // namespace

TEST_CASE("Statistics of the row of the numeric contract") {
  const float x[] = {3.0625f, 1.3671875f, -0.001f, 0, 1e-7f, -3.0625f};
  const matrix_view in(x, 1, 6);
  const auto q = octet::quantize<octet::e4m3>(in, octet::per_token{});
  const octet::statistics s = octet::measure(in, q.view());
  CHECK(s.count == 6);
  CHECK(s.flushed == 1);
  CHECK(s.clipped == 0);
  CHECK(s.not_finite == 0);
  CHECK(s.poisoned == 0);
}

TEST_CASE("Means and the signal-to-noise ratio are those of plain sums") {
  const std::vector<float> x = spread_values(123 * 457);
  const matrix_view in(x.data(), 123, 457);
  const auto q = octet::quantize<octet::e5m2>(in, octet::per_block<16, 16>{3, 5});
  std::vector<float> y(x.size());
  octet::dequantize_into(q.view(), matrix_view(y.data(), 123, 457));
  long double relative = 0, signal = 0, error = 0;
  std::size_t flushed = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double v = x[i], off = y[i] - v;
    relative += std::fabs(off) / std::fabs(v);
    signal += v * v;
    error += off * off;
    flushed += y[i] == 0;
  }
  const octet::statistics s = octet::measure(in, q.view());
  CHECK(s.count == x.size());
  CHECK(s.flushed == flushed);
  CHECK(std::fabs(s.mean_relative_error() / static_cast<double>(relative / static_cast<long double>(x.size())) - 1) <
        1e-12);
  CHECK(std::fabs(s.snr_db() - 10 * std::log10(static_cast<double>(signal / error))) < 1e-6);
}

TEST_CASE("Statistics of row ranges add up to those of the whole, to the bit, in any order") {
  const std::vector<float> x = spread_values(301 * 77);
  const matrix_view in(x.data(), 301, 77);
  const auto q = octet::quantize<octet::e4m3>(in, octet::per_block<128, 32>{});
  const octet::statistics whole = octet::measure(in, q.view());
  for (std::size_t part : {1u, 2u, 50u, 128u, 300u}) {
    std::vector<octet::statistics> parts;
    for (std::size_t first = 0; first < 301; first += part) {
      const std::size_t count = first + part > 301 ? 301 - first : part;
      parts.push_back(octet::measure(in.row_range(first, count), q.view().row_range(first, count)));
    }
    octet::statistics sum;
    for (auto p = parts.rbegin(); p != parts.rend(); ++p) sum += *p;
    CHECK(sum.count == whole.count);
    CHECK(sum.flushed == whole.flushed);
    CHECK(sum.mean_relative_error() == whole.mean_relative_error());
    CHECK(sum.snr_db() == whole.snr_db());
  }
}

TEST_CASE("Clipped, flushed, not finite and lost values are told apart") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float x[] = {448, 464, 464.00003f, -1000, 0x1p-10f, 0x1.000002p-10f, 0, infinity, nan};
  const matrix_view in(x, 1, 9);
  const octet::descale one(1);
  octet::e4m3 codes[9];
  octet::quantize_into(in, octet::per_tensor{}, &one, matrix_view(codes, 1, 9));
  const octet::quantized_view<octet::e4m3, octet::per_tensor> q{{codes, 1, 9}, &one, {}};
  octet::statistics s = octet::measure(in, q);
  CHECK(s.count == 9);
  CHECK(s.not_finite == 2);
  CHECK(s.clipped == 2);  // 464 is a tie that goes to 448
  CHECK(s.flushed == 1);
  CHECK(s.poisoned == 0);

  octet::scale_rule rule;
  rule.on_nonfinite = octet::nonfinite::propagate;
  const auto poisoned = octet::quantize<octet::e4m3>(in, octet::per_tensor{}, rule);
  s = octet::measure(in, poisoned.view());
  CHECK(s.not_finite == 2);
  CHECK(s.poisoned == 7);
  CHECK(s.clipped == 0);
  CHECK(s.flushed == 0);
  CHECK(s.compared == 0);
  CHECK(std::isnan(s.mean_relative_error()));
  CHECK(std::isnan(s.snr_db()));
}

TEST_CASE("A descale below zero, which is taken as it is, clips what its magnitude would") {
  const float x[] = {1000, -1000, 400, 0};
  const octet::descale minus(-1), minus_zero(-0.0f);
  const octet::e4m3 codes[4] = {};
  const matrix_view in(x, 1, 4);
  using view = octet::quantized_view<octet::e4m3, octet::per_tensor>;
  CHECK(octet::measure(in, view{{codes, 1, 4}, &minus, {}}).clipped == 2);
  CHECK(octet::measure(in, view{{codes, 1, 4}, &minus_zero, {}}).clipped == 3);
}

TEST_CASE("An exact copy has no error and an infinite ratio; no values have neither") {
  const float x[] = {1, 2, 448};
  const octet::descale one(1);
  octet::e4m3 codes[3];
  octet::quantize_into(matrix_view(x, 1, 3), octet::per_tensor{}, &one, matrix_view(codes, 1, 3));
  const octet::statistics s = octet::measure(
      matrix_view(x, 1, 3), octet::quantized_view<octet::e4m3, octet::per_tensor>{{codes, 1, 3}, &one, {}});
  CHECK(s.mean_relative_error() == 0);
  CHECK(std::isinf(s.snr_db()));
  CHECK(std::isnan(octet::statistics().mean_relative_error()));
}

TEST_CASE("Exact sums keep every bit from the smallest square to the largest") {
  octet::detail::exact_sum sum;
  const double least = std::ldexp(1.0, -298), most = std::ldexp(1.0, 256);
  sum.add(most);
  for (int i = 0; i < 3; ++i) sum.add(least);
  CHECK(sum.value() == most);
  octet::detail::exact_sum ordered, shuffled;
  oracle::random random(11);
  std::vector<double> x;
  for (int i = 0; i < 1000; ++i)
    x.push_back(std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 400) - 300));
  long double plain = 0;
  for (double v : x) ordered.add(v), plain += v;
  for (auto v = x.rbegin(); v != x.rend(); ++v) shuffled.add(*v);
  CHECK(ordered.value() == shuffled.value());
  CHECK(std::fabs(ordered.value() / static_cast<double>(plain) - 1) < 1e-15);
  octet::detail::exact_sum none;
  CHECK(none.value() == 0);
  none.add(0.0);
  CHECK(none.value() == 0);
}
