// Products with FP8 weights on every row of kernels against double sums, within the bound that the header states.
// SPDX-License-Identifier: MIT
#include "octet/gemv.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "formats.hpp"

using octet::bfloat16;
using octet::descale;
using octet::float16;
using octet::matrix_view;
using octet::per_block;
using octet::per_channel;
using octet::per_tensor;
using octet::per_token;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), quiet_nan = std::numeric_limits<float>::quiet_NaN();

// Runs what is given with each row of kernels that this machine has.
template <class Run>
void on_every_row(Run&& run) {
  for (std::size_t row = 0; row < octet::simd::row_count; ++row) {
    if (!octet::simd::row_runs_here(row)) continue;
    octet::simd::pick_row(row);
    INFO(octet::simd::row_name(row));
    run();
  }
  octet::simd::pick_row(octet::simd::row_count);
}

template <class F>
std::vector<F> random_codes(std::size_t n, oracle::random& random) {
  std::vector<F> codes(n);
  for (F& q : codes) do
      q = F::from_bits(static_cast<std::uint8_t>(random()));
    while (!isfinite(q));
  return codes;
}

template <class T>
std::vector<T> random_values(std::size_t n, oracle::random& random) {
  std::vector<T> x;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = random();
    x.push_back(
        T(std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)), -31 - static_cast<int>(bits >> 40 & 7))));
  }
  return x;
}

struct shape {
  std::size_t rows, cols, columns;
};

// The number of tiles along a row, and the descale of an element by the words of the definition.
template <class G>
std::size_t tiles_a_row(const G& g, const shape& s) {
  return g.tiles(s.rows, s.cols).cols.count(s.cols);
}
template <class G>
double descale_of(const G& g, const shape& s, const std::vector<descale>& d, std::size_t r, std::size_t c) {
  const octet::tiling t = g.tiles(s.rows, s.cols);
  return static_cast<double>(
      d[(r + t.rows.first) / t.rows.size * tiles_a_row(g, s) + (c + t.cols.first) / t.cols.size].value());
}

// One shape: strides with gaps, pointers that are aligned to nothing, NaN beyond every end.
template <class F, class T, class G>
void check(const G& granularity, const shape& s, std::size_t gap, tally& results) {
  oracle::random random(s.rows * 1000003 + s.cols * 1009 + s.columns * 11 + gap);
  const std::size_t w_stride = s.cols + gap, x_stride = s.cols + 2 * gap, y_stride = s.rows + gap;
  std::vector<F> codes = random_codes<F>(s.rows * w_stride + 2, random);
  std::vector<T> x = random_values<T>(s.columns * x_stride + 2, random);
  for (std::size_t i = 0; i < codes.size(); ++i)
    if (i == 0 || i + 1 == codes.size() || (i - 1) % (w_stride + (w_stride == 0)) >= s.cols)
      codes[i] = F::from_bits(F::nan_code);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i == 0 || i + 1 == x.size() || (i - 1) % (x_stride + (x_stride == 0)) >= s.cols) x[i] = T(quiet_nan);
  std::vector<descale> descales;
  for (std::size_t i = 0; i < octet::descale_count(granularity, s.rows, s.cols); ++i)
    descales.push_back(
        descale(std::ldexp(1.0f + static_cast<float>(random() >> 60) / 16, static_cast<int>(i % 9) - 4)));
  std::vector<float> y(s.columns * y_stride + 2, 7.0f);
  const octet::quantized_view<F, G> w{{codes.data() + 1, s.rows, s.cols, w_stride}, descales.data(), granularity};
  octet::gemv(w, matrix_view<const T>(x.data() + 1, s.columns, s.cols, x_stride),
              matrix_view<float>(y.data() + 1, s.columns, s.rows, y_stride));

  const double n = static_cast<double>(s.cols), t = static_cast<double>(tiles_a_row(granularity, s));
  const double bound = (n / 8 + 6 * t + 16) * 0x1p-24;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t m = i == 0 ? s.columns : (i - 1) / (y_stride + (y_stride == 0)),
                      r = i == 0 ? 0 : i - 1 - m * y_stride;
    if (m >= s.columns || r >= s.rows) {
      results.expect(y[i] == 7.0f, [&] { return "written outside, at " + std::to_string(i); });
      continue;
    }
    double sum = 0, magnitude = 0;
    for (std::size_t c = 0; c < s.cols; ++c) {
      const double product = descale_of(granularity, s, descales, r, c) * octet::decode<double>(w.codes(r, c)) *
                             static_cast<double>(x[1 + m * x_stride + c]);
      sum += product;
      magnitude += std::fabs(product);
    }
    results.expect(std::fabs(static_cast<double>(y[i]) - sum) <= bound * magnitude, [&] {
      return "[" + std::to_string(s.rows) + ", " + std::to_string(s.cols) + "] times " + std::to_string(s.columns) +
             ": element " + std::to_string(m) + ", " + std::to_string(r) + " is " + std::to_string(y[i]) + ", not " +
             std::to_string(sum);
    });
  }
}

template <class F, class T>
void check_shapes(tally& results) {
  std::vector<shape> shapes;
  for (std::size_t cols = 0; cols <= 300; cols += cols < 70 ? 1 : 23) shapes.push_back({3, cols, 1 + cols % 8});
  for (std::size_t rows = 0; rows <= 9; ++rows)
    for (std::size_t columns = 1; columns <= 8; ++columns) shapes.push_back({rows, 133, columns});
  for (const shape& s : shapes)
    for (std::size_t gap : {0u, 3u}) {
      check<F, T>(per_tensor{}, s, gap, results);
      check<F, T>(per_channel{0}, s, gap, results);
      check<F, T>(per_channel{1}, s, gap, results);
      check<F, T>(per_token{}, s, gap, results);
      check<F, T>(per_block<128, 128>{}, s, gap, results);
      check<F, T>(per_block<128, 128>{100, 37}, s, gap, results);
      check<F, T>(per_block<2, 64>{1, 63}, s, gap, results);
      check<F, T>(per_block<1, 32>{}, s, gap, results);
      check<F, T>(per_block<3, 5>{2, 4}, s, gap, results);
    }
}

// A 16-bit float of another library, with a layout that no row of vectors knows.
struct odd_float {
  std::uint16_t bits;
};

}  // namespace

template <>
struct octet::float_traits<odd_float> : octet::ieee_layout<odd_float, 6, 9> {};

TEMPLATE_TEST_CASE("A product is as near to the exact one as its bound says", "", octet::e4m3, octet::e5m2,
                   octet::e4m3fnuz, octet::p3109_p4) {
  on_every_row([] {
    tally results;
    check_shapes<TestType, float>(results);
    check_shapes<TestType, bfloat16>(results);
    INFO(results.first);
    CHECK(results.differences == 0);
    CHECK(results.compared > 10000);
  });
}

TEST_CASE("Every format and source type is multiplied") {
  on_every_row([] {
    tally results;
    for_each_kernel_format([&](auto tag, const auto&) {
      using F = typename decltype(tag)::type;
      if constexpr (F::is_signed) {
        check<F, float>(per_token{}, {3, 200, 1}, 1, results);
        check<F, float16>(per_block<1, 64>{}, {3, 200, 3}, 1, results);
      }
    });
    INFO(results.first);
    CHECK(results.differences == 0);
  });
}

TEST_CASE("Rows that are longer than the arranged activations are multiplied in chunks") {
  on_every_row([] {
    tally results;
    for (std::size_t columns : {1u, 3u, 8u}) {
      check<octet::e4m3, float>(per_tensor{}, {3, 20000, columns}, 5, results);
      check<octet::e4m3, bfloat16>(per_channel{0}, {2, 8193, columns}, 0, results);
      check<octet::e4m3, float>(per_channel{1}, {3, 9000, columns}, 1, results);
      check<octet::e4m3, float>(per_block<128, 128>{3, 100}, {5, 9001, columns}, 0, results);
      check<octet::e4m3, float>(per_block<1, 128>{0, 100}, {5, 9001, columns}, 0, results);
      check<octet::e4m3, float>(per_block<1, 40>{0, 1}, {2, 8300, columns}, 0, results);
      check<octet::e4m3, float>(per_block<1, 9999>{0, 1}, {2, 20001, columns}, 0, results);
    }
    INFO(results.first);
    CHECK(results.differences == 0);
  });
}

TEST_CASE("A source of another library takes the general road") {
  on_every_row([] {
    std::vector<octet::e4m3> codes;
    std::vector<odd_float> x;
    double wanted = 0;
    for (int i = 0; i < 150; ++i) {
      codes.push_back(octet::e4m3(i % 15 - 7));
      x.push_back(octet::exact::narrow<odd_float>(static_cast<double>(i % 11 - 5) / 4));
      wanted += (i % 15 - 7) * static_cast<double>(i % 11 - 5) / 4;
    }
    const descale d(2);
    float y = 0;
    octet::gemv(octet::as_quantized(matrix_view<const octet::e4m3>(codes.data(), 1, 150), &d, per_tensor{}),
                matrix_view<const odd_float>(x.data(), 1, 150), matrix_view<float>(&y, 1, 1));
    CHECK(static_cast<double>(y) == 2 * wanted);
    CHECK(static_cast<double>(octet::dot(codes.data(), x.data(), 150)) == wanted);
  });
}

// A product of one column that is not zero shows the value of every code, to the bit.
TEST_CASE("Every code is decoded exactly, in every position") {
  on_every_row([] {
    tally results;
    for_each_kernel_format([&](auto tag, const auto&) {
      using F = typename decltype(tag)::type;
      if constexpr (F::is_signed) {
        constexpr std::size_t rows = 256, cols = 131;
        std::vector<F> codes(rows * cols, F::from_bits(0));
        const descale one(1);
        for (std::size_t c = 0; c < cols; c = c < 64 ? c + 1 : c + 13) {
          for (std::size_t r = 0; r < rows; ++r) codes[r * cols + c] = F::from_bits(static_cast<std::uint8_t>(r));
          std::vector<float> x(cols, 2.0f), y(rows);
          octet::gemv(octet::as_quantized(matrix_view<const F>(codes.data(), rows, cols), &one, per_tensor{}),
                      matrix_view<const float>(x.data(), 1, cols), matrix_view<float>(y.data(), 1, rows));
          for (std::size_t r = 0; r < rows; ++r) {
            const F q = F::from_bits(static_cast<std::uint8_t>(r));
            const float value = octet::decode<float>(q) * 2;
            const float dotted = octet::dot(codes.data() + r * cols, x.data(), cols);
            std::vector<float> sums(cols);
            octet::axpy(2.0f, codes.data() + r * cols, sums.data(), cols);
            const auto same = [&](float got) { return isnan(q) ? std::isnan(got) : got == value; };
            results.expect(same(y[r]), [&] { return difference("gemv, code", r, c, 0); });
            results.expect(same(dotted), [&] { return difference("dot, code", r, c, 0); });
            for (std::size_t i = 0; i < cols; ++i)
              results.expect(i == c ? same(sums[i]) : sums[i] == 0, [&] { return difference("axpy, code", r, i, 0); });
            codes[r * cols + c] = F::from_bits(0);
          }
        }
      }
    });
    INFO(results.first);
    CHECK(results.differences == 0);
  });
}

TEST_CASE("NaN and infinities go where arithmetic sends them") {
  on_every_row([] {
    const descale d(0.5f);
    const std::size_t cols = 100;
    for (std::size_t columns : {1u, 2u, 5u}) {
      std::vector<octet::e5m2> codes(2 * cols, octet::e5m2(1));
      std::vector<float> x(columns * cols, 1.0f), y(2 * columns);
      const auto run = [&] {
        octet::gemv(octet::as_quantized(matrix_view<const octet::e5m2>(codes.data(), 2, cols), &d, per_tensor{}),
                    matrix_view<const float>(x.data(), columns, cols), matrix_view<float>(y.data(), columns, 2));
      };
      codes[70] = octet::e5m2::from_bits(octet::e5m2::infinity_code);
      run();
      CHECK(y[0] == infinity);
      CHECK(y[1] == 50.0f);
      x[70] = 0;
      run();
      CHECK(std::isnan(y[0]));
      CHECK(y[1] == 49.5f);
      x[70] = -infinity;
      run();
      CHECK(y[0] == -infinity);
      CHECK(y[1] == -infinity);
      codes[70] = octet::e5m2(1);
      x[70] = quiet_nan;
      run();
      CHECK(std::isnan(y[0]));
      CHECK(std::isnan(y[1]));
      for (std::size_t m = 1; m < columns; ++m) CHECK(y[2 * m] == 50.0f);
      codes[99] = octet::e5m2::from_bits(0xFE);
      x[70] = 1;
      run();
      for (std::size_t m = 0; m < columns; ++m) CHECK(std::isnan(y[2 * m]));
      CHECK(y[1] == 50.0f);
    }
  });
}

TEMPLATE_TEST_CASE("Dot products and added multiples are within their bounds, and end where they should", "",
                   octet::e4m3, octet::e5m2, octet::e4m3fnuz, octet::e2m1) {
  using F = TestType;
  on_every_row([] {
    tally results;
    oracle::random random(1);
    for (std::size_t n = 0; n <= 300; ++n) {
      std::vector<F> codes = random_codes<F>(n + 2, random);
      codes.front() = codes.back() = F::from_bits(F::nan_code);
      std::vector<float> x = random_values<float>(n + 2, random), y = random_values<float>(n + 2, random);
      std::vector<bfloat16> half = random_values<bfloat16>(n + 2, random);
      x.front() = x.back() = quiet_nan;
      half.front() = half.back() = bfloat16(quiet_nan);
      const auto check_dot = [&](const auto& v) {
        double sum = 0, magnitude = 0;
        for (std::size_t i = 1; i <= n; ++i) {
          sum += octet::decode<double>(codes[i]) * static_cast<double>(v[i]);
          magnitude += std::fabs(octet::decode<double>(codes[i]) * static_cast<double>(v[i]));
        }
        const double got = static_cast<double>(octet::dot(codes.data() + 1, v.data() + 1, n));
        results.expect(std::fabs(got - sum) <= (static_cast<double>(n) / 8 + 22) * 0x1p-24 * magnitude,
                       [&] { return "dot of " + std::to_string(n); });
      };
      check_dot(x);
      check_dot(half);
      const std::vector<float> before = y;
      octet::axpy(1.7f, codes.data() + 1, y.data() + 1, n);
      for (std::size_t i = 0; i < n + 2; ++i) {
        const double product = i == 0 || i == n + 1 ? 0.0 : 1.7f * octet::decode<double>(codes[i]);
        const double wanted = static_cast<double>(before[i]) + product;
        results.expect(std::fabs(static_cast<double>(y[i]) - wanted) <=
                           0x1p-24 * (std::fabs(wanted) + std::fabs(product)) * (1 + 0x1p-20),
                       [&] { return "axpy of " + std::to_string(n) + ", element " + std::to_string(i); });
      }
    }
    INFO(results.first);
    CHECK(results.differences == 0);
  });
}

TEST_CASE("Row ranges give the same sums as the whole, to the bit") {
  on_every_row([] {
    constexpr std::size_t rows = 300, cols = 777;
    oracle::random random(3);
    const std::vector<octet::e4m3> codes = random_codes<octet::e4m3>(rows * cols, random);
    const auto multiply_in_parts = [&](const auto& granularity, std::size_t columns) {
      std::vector<descale> descales;
      for (std::size_t i = 0; i < octet::descale_count(granularity, rows, cols); ++i)
        descales.push_back(descale(1.0f + static_cast<float>(i % 7) / 8));
      const std::vector<float> x = random_values<float>(columns * cols, random);
      std::vector<float> whole(columns * rows), parts(columns * rows);
      const auto w =
          octet::as_quantized(matrix_view<const octet::e4m3>(codes.data(), rows, cols), descales.data(), granularity);
      const matrix_view<const float> in(x.data(), columns, cols);
      octet::gemv(w, in, matrix_view<float>(whole.data(), columns, rows));
      for (std::size_t first = 0; first < rows;) {
        const std::size_t count = first + 37 > rows ? rows - first : 37;
        octet::gemv(w.row_range(first, count), in, matrix_view<float>(parts.data() + first, columns, count, rows));
        first += count;
      }
      CHECK(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)) == 0);
    };
    for (std::size_t columns : {1u, 2u, 7u}) {
      multiply_in_parts(per_tensor{}, columns);
      multiply_in_parts(per_channel{0}, columns);
      multiply_in_parts(per_channel{1}, columns);
      multiply_in_parts(per_block<128, 128>{100, 5}, columns);
      multiply_in_parts(per_block<64, 48>{1, 0}, columns);
    }
  });
}

TEST_CASE("An owning matrix is multiplied like its view") {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const float x[] = {1, -1, 2};
  float y[2] = {}, z[2] = {};
  const auto q = octet::quantize<octet::e4m3>(matrix_view(values, 2, 3), per_token{});
  octet::gemv(q, matrix_view(x, 1, 3), matrix_view(y, 1, 2));
  octet::gemv(q.view(), matrix_view(x, 1, 3), matrix_view(z, 1, 2));
  CHECK(y[0] == z[0]);
  CHECK(y[1] == z[1]);
  CHECK(y[1] == Approx(11).epsilon(0.1));
}

TEST_CASE("Without columns every sum is zero") {
  float y[6] = {1, 1, 1, 1, 1, 1};
  octet::gemv(octet::as_quantized(matrix_view<const octet::e4m3>(nullptr, 3, 0), nullptr, per_token{}),
              matrix_view<const float>(nullptr, 2, 0), matrix_view<float>(y, 2, 3));
  for (float sum : y) CHECK(sum == 0);
  octet::gemv(octet::as_quantized(matrix_view<const octet::e4m3>(nullptr, 0, 3), nullptr, per_token{}),
              matrix_view<const float>(y, 2, 3), matrix_view<float>(nullptr, 2, 0));
}

TEST_CASE("Products whose shapes and pointers do not fit are errors that name what is wrong") {
  const std::vector<octet::e4m3> codes(12, octet::e4m3(1));
  const std::vector<float> x(64, 1.0f);
  std::vector<float> y(64, 7.0f);
  const std::vector<descale> d(12, descale(1));
  const auto attempt = [&](matrix_view<const octet::e4m3> w, matrix_view<const float> in, matrix_view<float> out) {
    octet::gemv(octet::as_quantized(w, d.data(), per_token{}), in, out);
  };
  const matrix_view<const octet::e4m3> w(codes.data(), 3, 4);
  const matrix_view<const float> in(x.data(), 2, 4);
  const matrix_view<float> out(y.data(), 2, 3);
  CHECK_THROWS_WITH(attempt({codes.data(), 3, 4, 3}, in, out),
                    "octet::gemv: weights' row_stride 3 is less than cols 4");
  CHECK_THROWS_WITH(attempt(w, {x.data(), 2, 4, 1}, out), "octet::gemv: x's row_stride 1 is less than cols 4");
  CHECK_THROWS_WITH(attempt(w, in, {y.data(), 2, 3, 2}), "octet::gemv: y's row_stride 2 is less than cols 3");
  CHECK_THROWS_WITH(attempt(w, {x.data(), 2, 5}, out), "octet::gemv: x has 5 columns, the weights 4");
  CHECK_THROWS_WITH(attempt(w, {x.data(), 1, 4}, out), "octet::gemv: y has 2 rows, x 1");
  CHECK_THROWS_WITH(attempt(w, in, {y.data(), 2, 4}), "octet::gemv: y has 4 columns, the weights' rows are 3");
  CHECK_THROWS_WITH(attempt(w, {x.data(), 0, 4}, {y.data(), 0, 3}), "octet::gemv: x has no rows");
  CHECK_THROWS_WITH(attempt(w, {x.data(), 9, 4}, {y.data(), 9, 3}), "octet::gemv: x has 9 rows, more than 8");
  CHECK_THROWS_WITH(attempt({nullptr, 3, 4}, in, out), "octet::gemv: weights is a null pointer for 3 rows");
  CHECK_THROWS_AS(attempt(w, {nullptr, 2, 4}, out), std::invalid_argument);
  CHECK_THROWS_AS(attempt(w, in, {nullptr, 2, 3}), std::invalid_argument);
  CHECK_THROWS_AS(octet::gemv(octet::as_quantized(w, nullptr, per_token{}), in, out), std::invalid_argument);
  CHECK_THROWS_WITH(octet::gemv(octet::as_quantized(w, d.data(), per_channel{2}), in, out),
                    "octet::per_channel: axis is neither 0 nor 1");
  CHECK_THROWS_AS(attempt(w, {y.data() + 5, 2, 4}, out), std::invalid_argument);
  CHECK_THROWS_AS(attempt({octet::as_codes<octet::e4m3>(static_cast<const void*>(y.data())), 3, 4}, in, out),
                  std::invalid_argument);
  CHECK_THROWS_AS(octet::gemv(octet::as_quantized(w, octet::as_descales(y.data() + 3), per_token{}), in, out),
                  std::invalid_argument);
  CHECK_THROWS_WITH(static_cast<void>(octet::dot(static_cast<const octet::e4m3*>(nullptr), x.data(), 4)),
                    "octet::dot: codes is a null pointer for 4 codes");
  CHECK_THROWS_AS(static_cast<void>(octet::dot(codes.data(), static_cast<const float*>(nullptr), 4)),
                  std::invalid_argument);
  CHECK_THROWS_AS(octet::axpy(1, codes.data(), static_cast<float*>(nullptr), 4), std::invalid_argument);
  CHECK_THROWS_AS(octet::axpy(1, octet::as_codes<octet::e4m3>(static_cast<const void*>(y.data())), y.data(), 4),
                  std::invalid_argument);
  for (float sum : y) CHECK(sum == 7.0f);
  CHECK(octet::dot(static_cast<const octet::e4m3*>(nullptr), static_cast<const float*>(nullptr), 0) == 0);
  octet::axpy(1, static_cast<const octet::e4m3*>(nullptr), static_cast<float*>(nullptr), 0);
}
