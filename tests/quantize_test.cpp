// Quantize and dequantize against a program of five plain loops, over shapes, granularities, source types and errors.
// SPDX-License-Identifier: MIT
#include "octet/quantize.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "formats.hpp"

using octet::descale;
using octet::matrix_view;
using octet::per_block;
using octet::per_channel;
using octet::per_tensor;
using octet::per_token;
using octet::scale_rule;

namespace {

// The tile of an element by the words of the definition, as a number and as how many there are.
struct tiles {
  std::size_t count;
  std::vector<std::size_t> of;
};
tiles tiles_of(const per_tensor&, std::size_t rows, std::size_t cols) {
  return {rows * cols != 0 ? 1u : 0u, std::vector<std::size_t>(rows * cols, 0)};
}
tiles tiles_of(const per_token&, std::size_t rows, std::size_t cols) {
  tiles t{cols != 0 ? rows : 0, {}};
  for (std::size_t i = 0; i < rows * cols; ++i) t.of.push_back(i / cols);
  return t;
}
tiles tiles_of(const per_channel& g, std::size_t rows, std::size_t cols) {
  if (g.axis == 0) return tiles_of(per_token{}, rows, cols);
  tiles t{rows != 0 ? cols : 0, {}};
  for (std::size_t i = 0; i < rows * cols; ++i) t.of.push_back(i % cols);
  return t;
}
template <std::size_t R, std::size_t C>
tiles tiles_of(const per_block<R, C>& g, std::size_t rows, std::size_t cols) {
  const std::size_t top = g.first_row / R, left = g.first_col / C;
  if (rows * cols == 0) return {0, {}};
  const std::size_t width = (g.first_col + cols - 1) / C - left + 1, height = (g.first_row + rows - 1) / R - top + 1;
  tiles t{height * width, {}};
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c)
      t.of.push_back(((g.first_row + r) / R - top) * width + ((g.first_col + c) / C - left));
  return t;
}

std::vector<float> random_values(std::size_t n, std::uint64_t seed) {
  oracle::random random(seed);
  std::vector<float> x(n);
  for (float& v : x) {
    const std::uint64_t bits = random();
    v = std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)), -31 - static_cast<int>(bits >> 40 & 15));
  }
  return x;
}

template <class T>
std::vector<T> as(const std::vector<float>& x) {
  std::vector<T> y;
  for (float v : x) y.push_back(T(v));
  return y;
}

// Codes, descales and decoded values of one quantized matrix against plain arithmetic and the oracle's rounding.
template <class F, class T, class G>
void check(const oracle::table& format, const G& granularity, std::size_t rows, std::size_t cols, std::size_t gap,
           std::uint64_t seed, tally& results) {
  const std::size_t stride = cols + gap;
  const std::vector<T> x = as<T>(random_values(rows * stride + 1, seed));
  const tiles t = tiles_of(granularity, rows, cols);
  std::vector<float> amax(t.count), wanted(t.count);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c) {
      float& a = amax[t.of[r * cols + c]];
      a = std::fmax(a, std::fabs(static_cast<float>(x[r * stride + c])));
    }
  const float largest = static_cast<float>(format.grid[format.largest]);
  for (std::size_t i = 0; i < t.count; ++i) wanted[i] = amax[i] == 0 ? 1 : amax[i] / largest;

  // The caller's memory, with guards around the codes.
  std::vector<F> codes(rows * stride + 2, F::from_bits(0x2A & F::magnitude_mask));
  std::vector<descale> descales(t.count + 1, descale(-1));
  const matrix_view<const T> in(x.data(), rows, cols, stride);
  const matrix_view<F> out(codes.data() + 1, rows, cols, stride);
  REQUIRE(octet::descale_count(granularity, rows, cols) == t.count);
  octet::quantize_into(in, granularity, scale_rule(), out, descales.data());
  for (std::size_t i = 0; i < t.count; ++i)
    results.expect(descales[i].value() == wanted[i], [&] { return "descale " + std::to_string(i); });
  results.expect(descales[t.count].value() == -1, [] { return std::string("a descale behind the last"); });
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < stride; ++c) {
      const unsigned got = codes[1 + r * stride + c].bits();
      unsigned code = 0x2A & F::magnitude_mask;
      if (c < cols)
        code = format.encode(static_cast<float>(x[r * stride + c]) / wanted[t.of[r * cols + c]],
                             oracle::mode::nearest_even, true);
      else if (r + 1 == rows)
        continue;
      results.expect(got == code, [&] { return difference("code", r * cols + c, got, code); });
    }
  results.expect(codes.front().bits() == (0x2A & F::magnitude_mask),
                 [] { return std::string("a code before the first"); });

  // The same descales given, the owning form, and the decoded values.
  std::vector<F> again(rows * cols);
  octet::quantize_into(in, granularity, descales.data(), matrix_view<F>(again.data(), rows, cols));
  const auto q = octet::quantize<F>(in, granularity);
  std::vector<float> decoded(rows * cols);
  octet::dequantize_into(q.view(), matrix_view<float>(decoded.data(), rows, cols));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c) {
      const F code = codes[1 + r * stride + c];
      results.expect(again[r * cols + c].bits() == code.bits(),
                     [] { return std::string("given descales give other codes"); });
      results.expect(q.codes().row(r)[c].bits() == code.bits(),
                     [] { return std::string("quantize gives other codes"); });
      const auto value = static_cast<float>(format.all[code.bits()] * wanted[t.of[r * cols + c]]);
      results.expect(decoded[r * cols + c] == value, [&] { return "value " + std::to_string(r * cols + c); });
    }
}

// Every granularity, or, for formats that only change the rounding, those that take different roads.
template <class F, class T, bool All>
void check_shapes(const oracle::table& format, tally& results) {
  const std::size_t shapes[][2] = {{0, 0}, {0, 5},   {5, 0},   {1, 1},   {1, 7},    {7, 1},
                                   {3, 5}, {13, 17}, {5, 300}, {300, 3}, {130, 129}};
  std::uint64_t seed = 0;
  for (const auto& s : shapes)
    for (std::size_t gap : {0u, 3u}) {
      check<F, T>(format, per_channel{1}, s[0], s[1], gap, ++seed, results);
      check<F, T>(format, per_block<3, 2>{1, 1}, s[0], s[1], gap, ++seed, results);
      if constexpr (All) {
        check<F, T>(format, per_tensor{}, s[0], s[1], gap, ++seed, results);
        check<F, T>(format, per_token{}, s[0], s[1], gap, ++seed, results);
        check<F, T>(format, per_channel{0}, s[0], s[1], gap, ++seed, results);
        check<F, T>(format, per_block<128, 128>{}, s[0], s[1], gap, ++seed, results);
        check<F, T>(format, per_block<128, 128>{96, 1000}, s[0], s[1], gap, ++seed, results);
        check<F, T>(format, per_block<1, 32>{0, 7}, s[0], s[1], gap, ++seed, results);
        check<F, T>(format, per_block<4, 1>{2, 0}, s[0], s[1], gap, ++seed, results);
      }
    }
}

const float infinity = std::numeric_limits<float>::infinity();
const float quiet_nan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("Codes, descales and decoded values are those of plain arithmetic, for every format, shape and granularity") {
  for_each_kernel_format([](auto tag, const oracle::table& format) {
    using F = typename decltype(tag)::type;
    if constexpr (F::is_signed) {
      tally results;
      check_shapes<F, float, std::is_same_v<F, octet::e4m3>>(format, results);
      CAPTURE(format.largest, results.first);
      CHECK(results.differences == 0);
      CHECK(results.compared > 100000);
    }
  });
}

TEST_CASE("Sixteen-bit sources are quantized as the floats they are") {
  tally results;
  check_shapes<octet::e4m3, octet::float16, false>(oracle::of(0), results);
  check_shapes<octet::e4m3, octet::bfloat16, true>(oracle::of(0), results);
  check_shapes<octet::e5m2, octet::bfloat16, false>(oracle::of(1), results);
  CAPTURE(results.first);
  CHECK(results.differences == 0);
}

TEST_CASE("A row of the numeric contract, to the bit") {
  const float x[] = {3.0625f, 1.3671875f, -0.001f, 0, 1e-7f, -3.0625f};
  const auto q = octet::quantize<octet::e4m3>(matrix_view(x, 1, 6), per_token{});
  const unsigned codes[] = {0x7E, 0x74, 0xA1, 0x00, 0x00, 0xFE};
  for (int i = 0; i < 6; ++i) CHECK(q.codes().data[i].bits() == codes[i]);
  CHECK(q.descales()[0].value() == 0.0068359375f);
  float y[6];
  octet::dequantize_into(q.view(), matrix_view(y, 1, 6));
  const float values[] = {3.0625f, 1.3125f, -0.140625f * 0.0068359375f, 0, 0, -3.0625f};
  for (int i = 0; i < 6; ++i) CHECK(y[i] == values[i]);
}

TEST_CASE("Dividing by the descale and multiplying by its reciprocal differ where they should") {
  const float x[] = {1.3671875f, 3.0625f};
  scale_rule rule;
  CHECK(octet::quantize<octet::e4m3>(matrix_view(x, 1, 2), per_tensor{}, rule).codes().data[0].bits() == 0x74);
  rule.on_the_way_in = octet::scaling::scale_first;
  CHECK(octet::quantize<octet::e4m3>(matrix_view(x, 1, 2), per_tensor{}, rule).codes().data[0].bits() == 0x75);
}

TEST_CASE("Quotients are those of IEEE division also for denormal data and denormal descales") {
  oracle::random random(3);
  const auto& format = oracle::of(0);
  std::uint64_t differences = 0;
  for (int i = 0; i < 1 << 20; ++i) {
    const std::uint64_t bits = random();
    const std::uint32_t xb = static_cast<std::uint32_t>(bits) & (i % 4 == 0 ? 0x807FFFFFu : 0xFFFFFFFFu);
    const std::uint32_t db = 1 + (static_cast<std::uint32_t>(bits >> 32) % (i % 3 == 0 ? 0x007FFFFFu : 0x7F7FFFFEu));
    float x, d;
    std::memcpy(&x, &xb, sizeof x);
    std::memcpy(&d, &db, sizeof d);
    const descale given(d);
    octet::e4m3 code;
    octet::quantize_into(matrix_view<const float>(&x, 1, 1), per_tensor{}, &given,
                         matrix_view<octet::e4m3>(&code, 1, 1));
    const float quotient = x / d;
    differences += code.bits() != format.encode(quotient, oracle::mode::nearest_even, true);
  }
  CHECK(differences == 0);
}

TEST_CASE("Quotients next to a tie are those of IEEE division, in every row that runs here") {
  oracle::random random(4);
  const auto& format = oracle::of(0);
  constexpr std::size_t n = 64;
  std::uint64_t differences[octet::simd::row_count] = {};
  for (int trial = 0; trial < 1 << 14; ++trial) {
    // A descale of any significand, and values within four units of the last place of a tie between two codes times it.
    const std::uint32_t db = ((127 - 39 + static_cast<std::uint32_t>(random() % 78)) << 23) |
                             static_cast<std::uint32_t>(random() & 0x7FFFFF);
    float d, x[n];
    std::memcpy(&d, &db, sizeof d);
    for (float& v : x) {
      const std::uint64_t bits = random();
      const auto code = static_cast<unsigned>(bits % format.largest);
      const float tie = static_cast<float>((format.grid[code] + format.grid[code + 1]) / 2 * double{d});
      std::uint32_t word;
      std::memcpy(&word, &tie, sizeof word);
      word += static_cast<std::uint32_t>(bits >> 20 & 7) - 4;
      std::memcpy(&v, &word, sizeof v);
    }
    octet::e4m3 codes[n];
    const descale given(d);
    for (std::size_t row = 0; row < octet::simd::row_count; ++row) {
      if (!octet::simd::row_runs_here(row)) continue;
      octet::simd::pick_row(row);
      octet::quantize_into(matrix_view(x, 1, n), per_tensor{}, &given, matrix_view(codes, 1, n));
      for (std::size_t i = 0; i < n; ++i)
        differences[row] += codes[i].bits() != format.encode(x[i] / d, oracle::mode::nearest_even, true);
    }
  }
  octet::simd::pick_row(octet::simd::row_count);
  for (std::size_t row = 0; row < octet::simd::row_count; ++row) {
    CAPTURE(octet::simd::row_name(row));
    CHECK(differences[row] == 0);
  }
}

TEST_CASE("A descale too small for its data saturates and never makes a NaN") {
  const float x[] = {0x1p-140f, 5.0f, -1272.0f};
  const descale tiny(0x1p-149f), small(0.01f), one(1);
  octet::e4m3 code[3];
  octet::quantize_into(matrix_view(x, 1, 3), per_tensor{}, &tiny, matrix_view(code, 1, 3));
  CHECK(code[0].bits() == 0x7E);
  octet::quantize_into(matrix_view(x, 1, 3), per_tensor{}, &small, matrix_view(code, 1, 3));
  CHECK(code[1].bits() == 0x7E);
  octet::quantize_into(matrix_view(x, 1, 3), per_tensor{}, &one, matrix_view(code, 1, 3));
  CHECK(code[2].bits() == 0xFE);
}

TEST_CASE("A group of zeros keeps a usable descale and signed zeros") {
  const float x[] = {0.0f, -0.0f, 0.0f, 1.0f, 2.0f, 4.0f};
  const auto q = octet::quantize<octet::e4m3>(matrix_view(x, 2, 3), per_token{});
  CHECK(q.descales()[0].value() == 1);
  CHECK(q.codes().data[0].bits() == 0x00);
  CHECK(q.codes().data[1].bits() == 0x80);
  CHECK(q.descales()[1].value() == 4.0f / 448);
}

TEST_CASE("NaN and infinity follow the policy, are counted, and do not touch other groups") {
  const float x[] = {1, quiet_nan, 2, infinity, 3, -4};
  const matrix_view in(x, 2, 3);
  scale_rule rule;
  SECTION("ignore: the descale is that of the finite values") {
    const auto q = octet::quantize<octet::e4m3>(in, per_token{}, rule);
    CHECK(q.not_finite() == 2);
    CHECK(q.descales()[0].value() == 2.0f / 448);
    CHECK(q.descales()[1].value() == 4.0f / 448);
    CHECK(q.codes().data[1].bits() == 0x7F);
    CHECK(q.codes().data[2].bits() == 0x7E);
    CHECK(q.codes().data[3].bits() == 0x7E);
  }
  SECTION("propagate: the whole group decodes to NaN") {
    rule.on_nonfinite = octet::nonfinite::propagate;
    const float y[] = {1, quiet_nan, 2, 1, 3, -4};
    const auto q = octet::quantize<octet::e4m3>(matrix_view(y, 2, 3), per_token{}, rule);
    CHECK(q.not_finite() == 1);
    CHECK(std::isnan(q.descales()[0].value()));
    for (int i = 0; i < 3; ++i) CHECK(isnan(q.codes().data[i]));
    CHECK(q.descales()[1].value() == 4.0f / 448);
    CHECK(q.codes().data[5].bits() == 0xFE);
    const auto infinite = octet::quantize<octet::e4m3>(in.row_range(1, 1), per_token{}, rule);
    CHECK(std::isnan(infinite.descales()[0].value()));
  }
  SECTION("reject: an error that gives the number") {
    rule.on_nonfinite = octet::nonfinite::reject;
    CHECK_THROWS_WITH(static_cast<void>(octet::quantize<octet::e4m3>(in, per_tensor{}, rule)),
                      "octet::quantize_into: the input has 2 values that are NaN or infinite; allowed are 0");
  }
  SECTION("one column a group") {
    const auto q = octet::quantize<octet::e4m3>(in, per_channel{1}, rule);
    CHECK(q.not_finite() == 2);
    CHECK(q.descales()[0].value() == 1.0f / 448);
    CHECK(q.descales()[1].value() == 3.0f / 448);
  }
  SECTION("a format without NaN takes the largest value") {
    CHECK(octet::quantize<octet::e2m1>(in, per_token{}, rule).codes().data[1].bits() == 0x07);
  }
}

TEST_CASE("Groups with and without NaN and infinities side by side are each what they are alone") {
  constexpr std::size_t groups = 40;
  oracle::random random(77);
  for (const std::size_t width : {24u, 32u, 128u, 512u, 1000u})
    for (const octet::nonfinite policy : {octet::nonfinite::ignore, octet::nonfinite::propagate}) {
      std::vector<float> x = random_values(groups * width, width);
      for (std::size_t g = 0; g < groups; ++g)
        if (random() % 3 == 0) {
          x[g * width + random() % width] = random() % 2 == 0 ? quiet_nan : -infinity;
          x[g * width + random() % width] = infinity;
        }
      scale_rule rule;
      rule.on_nonfinite = policy;
      std::vector<octet::e4m3> codes(x.size()), alone(width);
      std::vector<descale> descales(groups, descale(1));
      const std::size_t not_finite =
          octet::quantize_into(matrix_view<const float>(x.data(), groups, width), per_token{}, rule,
                               matrix_view(codes.data(), groups, width), descales.data());
      std::size_t counted = 0, differences = 0;
      for (std::size_t g = 0; g < groups; ++g) {
        descale d(1);
        counted += octet::quantize_into(matrix_view<const float>(x.data() + g * width, 1, width), per_tensor{}, rule,
                                        matrix_view(alone.data(), 1, width), &d);
        differences += std::memcmp(&d, &descales[g], sizeof d) != 0;
        differences += std::memcmp(alone.data(), codes.data() + g * width, width) != 0;
      }
      CAPTURE(width, policy);
      CHECK(differences == 0);
      CHECK(not_finite == counted);
      CHECK(counted > 5);
    }
}

TEST_CASE("Rows of a quantized matrix can be decoded on their own") {
  const std::vector<float> x = random_values(300 * 40, 5);
  const matrix_view in(x.data(), 300, 40);
  const auto decode_in_parts = [&](const auto& granularity) {
    const auto q = octet::quantize<octet::e4m3>(in, granularity);
    std::vector<float> whole(x.size()), parts(x.size());
    octet::dequantize_into(q.view(), matrix_view(whole.data(), 300, 40));
    for (std::size_t first = 0; first < 300;) {
      const std::size_t count = first + 37 > 300 ? 300 - first : 37;
      octet::dequantize_into(q.view().row_range(first, count),
                             matrix_view(parts.data(), 300, 40).row_range(first, count));
      first += count;
    }
    CHECK(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)) == 0);
  };
  decode_in_parts(per_tensor{});
  decode_in_parts(per_token{});
  decode_in_parts(per_channel{0});
  decode_in_parts(per_channel{1});
  decode_in_parts(per_block<128, 16>{96, 3});
}

TEST_CASE("Values decode to sixteen bits in one rounding") {
  const float x[] = {1.0f, 0.3f, -0.007f, 0x1p-10f};
  const auto q = octet::quantize<octet::e4m3>(matrix_view(x, 1, 4), per_tensor{});
  octet::bfloat16 b[4];
  octet::float16 h[4];
  octet::dequantize_into(q.view(), matrix_view(b, 1, 4));
  octet::dequantize_into(q.view(), matrix_view(h, 1, 4));
  // Neither neighbour is nearer to the exact product.
  const auto nearest = [](auto got, double value) {
    const auto distance = [value](auto to) { return std::fabs(static_cast<double>(to) - value); };
    const auto neighbour = [got](int step) { return got.from_bits(static_cast<std::uint16_t>(got.bits() + step)); };
    return distance(got) <= distance(neighbour(1)) && distance(got) <= distance(neighbour(-1));
  };
  for (int i = 0; i < 4; ++i) {
    const double value = octet::decode<double>(q.codes().data[i]) * double{q.descales()[0].value()};
    CHECK(nearest(b[i], value));
    CHECK(nearest(h[i], value));
  }
  const octet::e4m3 one = octet::e4m3(1);
  const descale small(0x1p-149f), large(3e38f);
  float y = 0;
  octet::dequantize_into(octet::quantized_view<octet::e4m3, per_tensor>{{&one, 1, 1}, &small, {}},
                         matrix_view(&y, 1, 1));
  CHECK(y == 0x1p-149f);
  const octet::e4m3 two = octet::e4m3(2);
  octet::dequantize_into(octet::quantized_view<octet::e4m3, per_tensor>{{&two, 1, 1}, &large, {}},
                         matrix_view(&y, 1, 1));
  CHECK(y == infinity);
}

TEST_CASE("With descales given, a matrix can be quantized in row ranges cut anywhere") {
  const std::vector<float> x = random_values(300 * 40, 6);
  const matrix_view in(x.data(), 300, 40);
  const auto quantize_in_parts = [&](const auto& granularity) {
    const auto q = octet::quantize<octet::e4m3>(in, granularity);
    std::vector<octet::e4m3> parts(x.size());
    const matrix_view out(parts.data(), 300, 40);
    for (std::size_t first = 0; first < 300;) {
      const std::size_t count = first + 37 > 300 ? 300 - first : 37;
      const auto rows = q.view().row_range(first, count);
      octet::quantize_into(in.row_range(first, count), rows.granularity, rows.descales, out.row_range(first, count));
      first += count;
    }
    CHECK(std::memcmp(parts.data(), q.codes().data, parts.size()) == 0);
  };
  quantize_in_parts(per_tensor{});
  quantize_in_parts(per_channel{1});
  quantize_in_parts(per_block<128, 16>{96, 3});
}

TEST_CASE("Multiplying by the reciprocal of a tiny descale makes no NaN of a zero") {
  const float x[] = {0, 1e-41f, -1};
  const descale tiny(1e-40f);
  octet::e4m3 codes[3];
  octet::quantize_into(matrix_view(x, 1, 3), per_tensor{}, &tiny, matrix_view(codes, 1, 3), octet::scaling::multiply);
  CHECK(codes[0].bits() == 0x00);
  CHECK(!isnan(codes[1]));
  CHECK(codes[2].bits() == 0xFE);
}

TEST_CASE("A quantized matrix moves and stays usable") {
  const float x[] = {1, 2, 3, 4};
  auto a = octet::quantize<octet::e4m3>(matrix_view(x, 2, 2), per_tensor{});
  auto b = static_cast<decltype(a)&&>(a);
  CHECK(b.codes().row(1)[1].bits() == 0x7E);
  a = octet::quantize<octet::e4m3>(matrix_view(x, 1, 2), per_tensor{});
  CHECK(a.codes().rows == 1);
  CHECK(a.codes().cols == 2);
}

TEST_CASE("Shapes and pointers that do not fit are errors that name what is wrong, and nothing is written") {
  const std::vector<float> x(16, 1.0f);
  std::vector<octet::e4m3> codes(16, octet::e4m3::from_bits(0x11));
  std::vector<descale> descales(16, descale(7));
  const auto attempt = [&](matrix_view<const float> in, matrix_view<octet::e4m3> out, descale* d) {
    return octet::quantize_into(in, per_token{}, scale_rule(), out, d);
  };
  const matrix_view<const float> in(x.data(), 4, 4);
  const matrix_view<octet::e4m3> out(codes.data(), 4, 4);
  CHECK_THROWS_WITH(attempt({x.data(), 4, 4, 3}, out, descales.data()),
                    "octet::quantize_into: input row_stride 3 is less than cols 4");
  CHECK_THROWS_WITH(attempt(in, {codes.data(), 4, 4, 2}, descales.data()),
                    "octet::quantize_into: output row_stride 2 is less than cols 4");
  CHECK_THROWS_WITH(attempt(in, {codes.data(), 3, 4}, descales.data()),
                    "octet::quantize_into: output has 3 rows, the input 4");
  CHECK_THROWS_WITH(attempt(in, {codes.data(), 4, 3}, descales.data()),
                    "octet::quantize_into: output has 3 columns, the input 4");
  const auto of_three_rows =
      octet::as_quantized(matrix_view<const octet::e4m3>(codes.data(), 3, 4), descales.data(), octet::per_token{});
  CHECK_THROWS_WITH(octet::measure(in, of_three_rows), "octet::measure: the codes have 3 rows, the input 4");
  CHECK_THROWS_AS(attempt({nullptr, 4, 4}, out, descales.data()), std::invalid_argument);
  CHECK_THROWS_AS(attempt(in, {nullptr, 4, 4}, descales.data()), std::invalid_argument);
  CHECK_THROWS_AS(attempt(in, out, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(attempt({x.data(), std::size_t{1} << 40, std::size_t{1} << 40},
                          {codes.data(), std::size_t{1} << 40, std::size_t{1} << 40}, descales.data()),
                  std::invalid_argument);
  CHECK_THROWS_AS(octet::quantize<octet::e4m3>(matrix_view<const float>(nullptr, 4, 4), per_token{}),
                  std::invalid_argument);
  // Codes on top of the input, at its end, and descales on top of it.
  float shared[16] = {};
  for (std::size_t at : {0u, 1u, 63u})
    CHECK_THROWS_AS(
        attempt({shared, 4, 4}, {octet::as_codes<octet::e4m3>(reinterpret_cast<unsigned char*>(shared) + at), 4, 4},
                descales.data()),
        std::invalid_argument);
  CHECK_THROWS_AS(attempt({shared, 4, 4}, out, reinterpret_cast<descale*>(shared)), std::invalid_argument);
  // Descales that are given.
  for (float bad : {0.0f, -1.0f, quiet_nan, infinity}) {
    descales[2] = descale(bad);
    CHECK_THROWS_WITH(octet::quantize_into(in, per_token{}, static_cast<const descale*>(descales.data()), out),
                      "octet::quantize_into: descales: number 2 is not finite and above zero; there are 4");
  }
  // Rules that can give no descale.
  scale_rule rule;
  rule.zero = 0;
  CHECK_THROWS_WITH(static_cast<void>(octet::quantize<octet::e4m3>(in, per_token{}, rule)),
                    "octet::scale_rule: zero is not finite and above zero");
  rule = scale_rule();
  rule.floor = quiet_nan;
  CHECK_THROWS_AS(static_cast<void>(octet::quantize<octet::e4m3>(in, per_token{}, rule)), std::invalid_argument);
  rule = scale_rule();
  rule.margin = 127;
  CHECK_THROWS_AS(static_cast<void>(octet::quantize<octet::e4m3>(in, per_token{}, rule)), std::invalid_argument);
  for (const octet::e4m3 c : codes) CHECK(c.bits() == 0x11);
  CHECK_THROWS_WITH(attempt({nullptr, 4, 4}, out, descales.data()),
                    "octet::quantize_into: input is a null pointer for 4 rows");
  // A NaN that the rule rejects is found before the first code is written, wherever it is.
  std::vector<float> with_nan(x);
  with_nan[15] = quiet_nan;
  rule = scale_rule();
  rule.on_nonfinite = octet::nonfinite::reject;
  CHECK_THROWS_AS(
      octet::quantize_into(matrix_view<const float>(with_nan.data(), 4, 4), per_token{}, rule, out, descales.data()),
      std::invalid_argument);
  for (const octet::e4m3 c : codes) CHECK(c.bits() == 0x11);
  for (int axis : {-1, 2, 7})
    CHECK_THROWS_WITH(static_cast<void>(octet::quantize<octet::e4m3>(in, per_channel{axis})),
                      "octet::per_channel: axis is neither 0 nor 1");
  // Nothing to do is no error.
  CHECK(attempt({nullptr, 0, 4}, {nullptr, 0, 4}, nullptr) == 0);
  CHECK(attempt({nullptr, 4, 0}, {nullptr, 4, 0}, nullptr) == 0);
}
