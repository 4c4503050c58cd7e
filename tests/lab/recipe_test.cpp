// Recipes by name, and what they make of values, against the format's definition.
// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "lab/model/forward.hpp"
#include "lab/recipes/recipe_names.hpp"
#include "lab/recipes/recipe_treatment.hpp"
#include "lab/recipes/rounding.hpp"
#include "oracle.hpp"

namespace {

// Numbers of a few binades, with signs, some of them zero.
std::vector<float> numbers(std::size_t n, std::uint64_t seed) {
  oracle::random random(seed);
  std::vector<float> x(n);
  for (float& v : x) {
    const std::uint64_t bits = random();
    const double unit = static_cast<double>(bits >> 40) / 16777216.0;
    v = static_cast<float>(std::ldexp(unit - 0.5, static_cast<int>(bits & 15) - 10));
    if ((bits & 0xF0) == 0) v = 0;
  }
  return x;
}

// The value nearest to x that a format has, saturating; INT8 has whole numbers to 127.
double nearest(lab::number_format format, double x) {
  if (format == lab::number_format::int8) return std::fmax(-127, std::fmin(127, std::nearbyint(x)));
  const std::size_t i = format == lab::number_format::e4m3 ? 0 : 1;
  return oracle::value(oracle::formats[i], oracle::of(i).encode(x, oracle::mode::nearest_even, true));
}
double largest(lab::number_format format) {
  return format == lab::number_format::int8 ? 127 : format == lab::number_format::e4m3 ? 448 : 57344;
}

struct shaped {
  const char* recipe;
  unsigned place;
  std::size_t tile_rows, tile_cols;  // 0: all
};

}  // namespace

TEST_CASE("Every place, format and sharing rounds as its definition says") {
  using namespace lab::recipe_words;
  constexpr std::size_t rows = 300, cols = 192, head_dim = 64;
  const shaped cases[] = {{"w-e4m3", w, 0, 0},
                          {"w-e5m2", w, 0, 0},
                          {"w-e4m3-channel", w, 1, 0},
                          {"w-e4m3-block", w, 128, 128},
                          {"w-int8-g128", w, 1, 128},
                          {"w-int8", w, 0, 0},
                          {"a-e4m3-token", a, 1, 0},
                          {"a-e4m3-1x128", a, 1, 128},
                          {"k-e4m3-head", k, 0, head_dim},
                          {"k-e4m3-channel", k, 0, 1},
                          {"k-e4m3-token", k, 1, head_dim},
                          {"v-int8-channel", v, 0, 1},
                          {"v-e5m2-1x32", v, 1, 32},
                          {"v-int8-token", v, 1, head_dim}};
  for (const shaped& c : cases) {
    INFO(c.recipe);
    const lab::recipe r = lab::parse_recipe(c.recipe);
    const lab::recipe_part part = r.weights       ? *r.weights
                                  : r.activations ? *r.activations
                                  : r.keys        ? *r.keys
                                                  : *r.values;
    std::vector<float> x = numbers(rows * cols, c.place);
    for (std::size_t i = 0; i < cols; ++i) x[5 * cols + i] *= 100, x[i * cols + 7] *= 30;
    const std::size_t height = c.tile_rows != 0 ? c.tile_rows : rows, width = c.tile_cols != 0 ? c.tile_cols : cols;
    std::vector<float> expected(x.size());
    std::uint64_t flushed = 0;
    for (std::size_t r0 = 0; r0 < rows; r0 += height)
      for (std::size_t c0 = 0; c0 < cols; c0 += width) {
        float amax = 0;
        const auto each = [&](const auto& body) {
          for (std::size_t i = r0; i < std::min(rows, r0 + height); ++i)
            for (std::size_t j = c0; j < std::min(cols, c0 + width); ++j) body(i * cols + j);
        };
        each([&](std::size_t i) { amax = std::max(amax, std::fabs(x[i])); });
        const float descale = amax == 0 ? 1 : amax / static_cast<float>(largest(part.format));
        each([&](std::size_t i) {
          const double code = nearest(part.format, static_cast<double>(x[i] / descale));
          flushed += x[i] != 0 && code == 0 ? 1 : 0;
          expected[i] = static_cast<float>(code * static_cast<double>(descale));
        });
      }
    const lab::losses lost =
        lab::round_values({x.data(), rows, cols}, {x.data(), rows, cols}, lab::rounding_of(part, c.place, head_dim, 0));
    CHECK(x == expected);
    CHECK(lost.count == rows * cols);
    CHECK(lost.flushed == flushed);
    CHECK(lost.clipped == 0);
  }
}

TEST_CASE("Without a scale values saturate, and scales that are powers of two are") {
  using namespace lab::recipe_words;
  std::vector<float> x = {1000, -3, 0.0001f, 2.0625f};
  lab::losses lost = lab::round_values({x.data(), 1, 4}, {x.data(), 1, 4},
                                       lab::rounding_of(*lab::parse_recipe("a-e4m3-noscale").activations, a, 64, 0));
  CHECK(x == std::vector<float>{448, -3, 0, 2});
  CHECK(lost.clipped == 1);
  CHECK(lost.flushed == 1);

  // 896 / 448 is a power of two; a little more needs the next one, and MX takes the exponent of amax itself.
  x = {900, 1.0625f};
  lab::round_values({x.data(), 1, 2}, {x.data(), 1, 2},
                    lab::rounding_of(*lab::parse_recipe("a-e4m3-pow2").activations, a, 64, 0));
  CHECK(x == std::vector<float>{896, 1});
  x = {1000, 1.0625f};
  lost = lab::round_values({x.data(), 1, 2}, {x.data(), 1, 2},
                           lab::rounding_of(*lab::parse_recipe("a-e4m3-mx").activations, a, 64, 0));
  CHECK(x == std::vector<float>{896, 1});
  CHECK(lost.clipped == 1);
}

TEST_CASE("Luck: a descale times a power of two that is whole changes nothing, others do") {
  using namespace lab::recipe_words;
  const lab::recipe_part part = *lab::parse_recipe("w-e4m3").weights;
  const std::vector<float> x = numbers(4096, 3);
  const auto rounded = [&](int eighths) {
    std::vector<float> y = x;
    lab::round_values({y.data(), 16, 256}, {y.data(), 16, 256}, lab::rounding_of(part, w, 64, eighths));
    return y;
  };
  CHECK(rounded(3) != rounded(0));
  // One binade higher the small values that were subnormal have less precision: all others are the same.
  const std::vector<float> same = rounded(0), doubled = rounded(8);
  std::size_t different = 0;
  for (std::size_t i = 0; i < x.size(); ++i) different += std::fabs(x[i]) > 0.02f && same[i] != doubled[i] ? 1 : 0;
  CHECK(different == 0);
}

TEST_CASE("A calibrated scale is that of the calibration, and what is beyond it clips") {
  lab::transformer_config config;
  config.shape.head_dim = 2;
  lab::observations seen(1);
  std::vector<float> calibration = {1, -2, 4, 8};
  seen.round(lab::site::keys, 0, {calibration.data(), 1, 4});
  lab::recipe_treatment how(lab::parse_recipe("k-e4m3-static"), config, 0, &seen);
  std::vector<float> x = {9, -8, 1, 0.5f};
  how.round(lab::site::keys, 0, {x.data(), 1, 4});
  CHECK(x == std::vector<float>{8, -8, 1, 0.5f});
  CHECK(how.lost(lab::site::keys).clipped == 1);
  CHECK(how.lost(lab::site::values).count == 0);
  lab::recipe_treatment by_head(lab::parse_recipe("k-e4m3-head-static"), config, 0, &seen);
  x = {9, -8, 9, 0.5f};
  by_head.round(lab::site::keys, 0, {x.data(), 1, 4});
  CHECK(x == std::vector<float>{2, -2, 8, 0.5f});
}

TEST_CASE("The descale of INT8 is a normal number, however small the values") {
  const lab::recipe_part part = *lab::parse_recipe("w-int8").weights;
  std::vector<float> x = {0x1p-149f, -0x1p-126f, 0, 0x1p-127f};
  lab::round_values({x.data(), 1, 4}, {x.data(), 1, 4}, lab::rounding_of(part, lab::recipe_words::w, 64, 0));
  CHECK(x == std::vector<float>{0, -0x1p-126f, 0, 0});
}

TEST_CASE("Groups of 32 stay within a KV head") {
  const lab::recipe_part part = *lab::parse_recipe("k-e4m3-mx").keys;
  CHECK(lab::rounding_of(part, lab::recipe_words::k, 64, 0).shape.cols == 32);
  CHECK_THROWS_WITH(lab::rounding_of(part, lab::recipe_words::k, 48, 0),
                    "groups of 32 would reach across KV heads of 48 values");
}

TEST_CASE("Of the softmax only what a query sees is counted") {
  lab::transformer_config config;
  config.shape.head_dim = 2;
  lab::recipe_treatment how(lab::parse_recipe("p-e4m3"), config, 0, nullptr);
  // Three queries, of which the last sees four positions; numerators, of which the smallest is flushed.
  std::vector<float> x = {1, 0.5f, 0, 0, 1, 1, 0x1p-20f, 0, 1, 1, 1, 1};
  how.round(lab::site::softmax, 0, {x.data(), 3, 4});
  CHECK(how.lost(lab::site::softmax).count == 2 + 3 + 4);
  CHECK(how.lost(lab::site::softmax).flushed == 1);
}

TEST_CASE("Every named recipe can be read, and no name is twice") {
  std::set<std::string> names;
  for (const lab::named_recipe& known : lab::named_recipes) {
    INFO(known.name);
    CHECK(lab::parse_recipe(known.name).name == known.name);
    CHECK(names.insert(known.name).second);
  }
}

TEST_CASE("A name says what is rounded") {
  const lab::recipe r = lab::parse_recipe("w-e5m2-channel+a-e4m3-static+k-int8-prerope-centred+head+residual-bf16");
  CHECK(r.weights->format == lab::number_format::e5m2);
  CHECK(r.weights->shared == lab::sharing::channel);
  CHECK(r.activations->scales == lab::scale_source::given);
  CHECK((r.of_keys().before_rope && r.of_keys().centred));
  CHECK_FALSE(r.values);
  CHECK((r.head && r.residual_bf16));
  const lab::recipe both = lab::parse_recipe("kv-e4m3-head");
  CHECK((both.keys && both.values));
}

TEST_CASE("A name that means nothing is refused, and the reason given") {
  const auto refused = [](const std::string& name, const std::string& reason) {
    INFO(name);
    CHECK_THROWS_AS(lab::parse_recipe(name), lab::usage_error);
    CHECK_THROWS_WITH(lab::parse_recipe(name), "recipe '" + name + "': " + reason);
  };
  refused("", "'' is no place: w, a, k, v, kv, p, head or residual-bf16");
  refused("q-e4m3", "'q' is no place: w, a, k, v, kv, p, head or residual-bf16");
  refused("w", "w has no format: e4m3, e5m2 or int8");
  refused("w-channel", "w has no format: e4m3, e5m2 or int8");
  refused("w-e4m3-tensor", "'tensor' is no word of --list");
  refused("w-e4m3-token", "'token' means nothing for w");
  refused("w-e4m3-e5m2", "'e5m2' decides again what is decided");
  refused("w-e4m3-mx-pow2", "'pow2' decides again what is decided");
  refused("w-int8-noscale", "int8 takes its scale from amax / 127");
  refused("w-e4m3-channel-noscale", "without a scale there is nothing to share");
  refused("kv-e4m3-token-static", "a scale for a token cannot be static");
  refused("w-e4m3+w-e5m2", "says twice what becomes of w");
  refused("k-e4m3+kv-e4m3", "says twice what becomes of kv");
  refused("head", "head needs a w part, which says how its weight is rounded");
  refused("v-e4m3-centred", "'centred' means nothing for v");
}
