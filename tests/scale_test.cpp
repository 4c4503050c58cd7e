// From amax to a descale: the rule's steps, its forms, and the small inputs that broke other tools.
// SPDX-License-Identifier: MIT
#include "octet/scale.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "catch.hpp"
#include "octet/recipes.hpp"
#include "oracle.hpp"

using octet::descale_form;
using octet::scale_of;
using octet::scale_rule;
using octet::scaling;

namespace {

scale_rule with_form(descale_form form) {
  scale_rule rule;
  rule.form = form;
  return rule;
}

// The E8M0 code of the descale of one amax, E4M3 elements.
template <class F = octet::e4m3>
int exponent_code(float amax, descale_form form) {
  const float d = scale_of<F>(amax, with_form(form)).stored.value();
  int exponent = 0;
  const float fraction = std::frexp(d, &exponent);
  REQUIRE(fraction == 0.5f);
  return exponent - 1 + 127;
}

float descale_for(float amax, const scale_rule& rule = scale_rule()) {
  return scale_of<octet::e4m3>(amax, rule).stored.value();
}

}  // namespace

static_assert(!std::is_convertible_v<float, octet::descale> && !std::is_convertible_v<octet::descale, float>);
static_assert(!std::is_convertible_v<octet::descale, octet::scale> &&
              !std::is_constructible_v<octet::scale, octet::descale>);
static_assert(sizeof(octet::descale) == sizeof(float) && std::is_standard_layout_v<octet::descale>);
static_assert(sizeof(octet::scale) == sizeof(float) && std::is_standard_layout_v<octet::scale> &&
              std::is_trivial_v<octet::scale>);
static_assert(scale_of<octet::e4m3>(448.0f, scale_rule()).stored.value() == 1.0f, "a constant expression");

TEST_CASE("The descale is amax over the largest value, rounded to nearest, for every format") {
  oracle::random random(1);
  for (int i = 0; i < 1 << 20; ++i) {
    const std::uint32_t bits = 0x04000000u + static_cast<std::uint32_t>(random() % 0x78000000u);
    float amax;
    std::memcpy(&amax, &bits, sizeof amax);
    const float wanted = amax / 448.0f, wanted5 = amax / 57344.0f;
    if (wanted >= 0x1p-126f && descale_for(amax) != wanted) FAIL(amax);
    if (wanted5 >= 0x1p-126f && scale_of<octet::e5m2>(amax, scale_rule()).stored.value() != wanted5) FAIL(amax);
  }
}

TEST_CASE("An all-zero group has the descale 1, or the one the rule names") {
  CHECK(descale_for(0) == 1);
  scale_rule rule;
  rule.zero = 0.25f;
  CHECK(descale_for(0, rule) == 0.25f);
  rule.floor = 1e-3f;  // a floor comes first
  CHECK(descale_for(0, rule) == 1e-3f / 448);
}

TEST_CASE("A tiny amax gives a descale that is normal, and so is its reciprocal") {
  for (float amax :
       {std::numeric_limits<float>::denorm_min(), 1e-38f, 0x1p-140f, 0x1.cp-120f, 1.3165536e-36f, 1.6851887e-34f})
    for (scaling how : {scaling::divide, scaling::multiply, scaling::scale_first})
      for (int form = 0; form < 8; ++form) {
        scale_rule rule = with_form(static_cast<descale_form>(form));
        rule.on_the_way_in = how;
        const octet::group_scale s = scale_of<octet::e4m3>(amax, rule);
        CAPTURE(amax, form, static_cast<int>(how), s.stored.value());
        CHECK(std::isnormal(s.stored.value()));
        CHECK(std::isnormal(1 / s.stored.value()));
        CHECK(std::isnormal(s.multiplier.value()));
      }
}

TEST_CASE("The largest amax with the largest margin gives a descale that is normal, and so is its reciprocal") {
  for (scaling how : {scaling::divide, scaling::multiply, scaling::scale_first})
    for (int margin : {-126, -1, 0, 1, 126})
      for (float amax : {1e-30f, 1.0f, std::numeric_limits<float>::max()}) {
        scale_rule rule;
        rule.margin = margin;
        rule.on_the_way_in = how;
        const octet::group_scale s = scale_of<octet::e2m1>(amax, rule);
        CAPTURE(amax, margin, static_cast<int>(how), s.stored.value());
        CHECK(std::isnormal(s.stored.value()));
        CHECK(std::isnormal(1 / s.stored.value()));
        CHECK(std::isnormal(s.multiplier.value()));
      }
}

TEST_CASE("Floor, cap, margin and largest combine in the documented order") {
  scale_rule rule;
  rule.floor = 2;
  rule.cap = 8;
  CHECK(descale_for(1, rule) == 2.0f / 448);
  CHECK(descale_for(4, rule) == 4.0f / 448);
  CHECK(descale_for(100, rule) == 8.0f / 448);
  rule.margin = 3;
  CHECK(descale_for(4, rule) == 32.0f / 448);
  rule.largest = 224;
  CHECK(descale_for(4, rule) == 32.0f / 224);
  rule.form = descale_form::e8m0_up;
  CHECK(descale_for(4, rule) == 0.25f);
}

TEST_CASE("NaN and infinity give a descale that is NaN, never a scale of zero") {
  for (float amax : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (int form = 0; form < 8; ++form) {
      const octet::group_scale s = scale_of<octet::e4m3>(amax, with_form(static_cast<descale_form>(form)));
      CHECK(std::isnan(s.stored.value()));
      CHECK(std::isnan(s.multiplier.value()));
    }
}

TEST_CASE("The exponent rules of MX give the codes of the tools that use them") {
  struct row {
    float amax;
    int floor, ceil, up, even;
  };
  const row rows[] = {{1.0f, 119, 119, 119, 119}, {1.5f, 119, 120, 119, 119},   {1.75f, 119, 120, 119, 119},
                      {1.8f, 119, 120, 120, 119}, {1.875f, 119, 120, 120, 119}, {1.9375f, 119, 120, 120, 120},
                      {2.0f, 120, 120, 120, 120}, {448.0f, 127, 128, 127, 127}, {957.0f, 128, 129, 129, 128}};
  for (const row& r : rows) {
    CAPTURE(r.amax);
    CHECK(exponent_code(r.amax, descale_form::e8m0_floor) == r.floor);
    CHECK(exponent_code(r.amax, descale_form::e8m0_ceil) == r.ceil);
    CHECK(exponent_code(r.amax, descale_form::e8m0_up) == r.up);
    CHECK(exponent_code(r.amax, descale_form::e8m0_even) == r.even);
  }
  CHECK(exponent_code<octet::e2m1>(2.7f, descale_form::e8m0_up) == 126);     // 2.7 / 6 needs 0.5
  CHECK(exponent_code<octet::e2m1>(2.7f, descale_form::e8m0_floor) == 126);  // floor(log2 2.7) - 2
}

TEST_CASE("Powers of two are found by bits: 16 and one ulp needs 32, 4 needs 4") {
  scale_rule rule = with_form(descale_form::e8m0_up);
  rule.largest = 1;
  CHECK(descale_for(16.0f, rule) == 16);
  CHECK(descale_for(std::nextafter(16.0f, 17.0f), rule) == 32);
  CHECK(descale_for(4.0f, rule) == 4);
  CHECK(descale_for(1024.0f / 448, rule) == 4);
}

TEST_CASE("A descale stored in a narrow type is one of its values, finite and above zero") {
  for (float amax : {1e-30f, 1e-8f, 0.3f, 1.0f, 700.0f, 480.0f * 448, 1e30f}) {
    CAPTURE(amax);
    const float in_bf16 = descale_for(amax, with_form(descale_form::bf16));
    std::uint32_t bits;
    std::memcpy(&bits, &in_bf16, sizeof bits);
    CHECK((bits & 0xFFFF) == 0);
    CHECK(std::fabs(in_bf16 / (amax / 448) - 1) <= 0x1p-8f);
    const float in_f16 = descale_for(amax, with_form(descale_form::f16));
    CHECK(in_f16 >= 0x1p-24f);
    CHECK(in_f16 <= 65504);
    const float in_e4m3 = descale_for(amax, with_form(descale_form::e4m3_code));
    CHECK(in_e4m3 >= 0x1p-9f);
    CHECK(in_e4m3 <= 448);
  }
  CHECK(descale_for(480.0f * 448, with_form(descale_form::e4m3_code)) ==
        448);  // clamps, where an unsaturated cast gives NaN
}

TEST_CASE("The factor on the way in is the one the rule names") {
  const float amax = 3.0625f;
  scale_rule rule;
  CHECK(scale_of<octet::e4m3>(amax, rule).divides);
  rule.on_the_way_in = scaling::multiply;
  CHECK(!scale_of<octet::e4m3>(amax, rule).divides);
  CHECK(scale_of<octet::e4m3>(amax, rule).multiplier.value() == 1.0f / (3.0625f / 448));
  rule.on_the_way_in = scaling::scale_first;
  CHECK(!scale_of<octet::e4m3>(amax, rule).divides);
  CHECK(scale_of<octet::e4m3>(amax, rule).multiplier.value() == 448 / 3.0625f);
  CHECK(scale_of<octet::e4m3>(amax, rule).stored.value() == 1 / (448 / 3.0625f));
}

TEST_CASE("Scales rounded down to a power of two are descales rounded up") {
  oracle::random random(2);
  for (int i = 0; i < 1 << 18; ++i) {
    const std::uint32_t bits = 0x20000000u + static_cast<std::uint32_t>(random() % 0x40000000u);
    float amax;
    std::memcpy(&amax, &bits, sizeof amax);
    int exponent = 0;
    std::frexp(448 / amax, &exponent);
    const float scale = std::ldexp(1.0f, exponent - 1);
    if (scale_of<octet::e4m3>(amax, octet::recipes::transformer_engine_block()).stored.value() != 1 / scale) FAIL(amax);
  }
}

TEST_CASE("Recipes give the descales of the tools they are named after") {
  namespace recipes = octet::recipes;
  CHECK(descale_for(0, recipes::vllm_token()) == 1.0f / (448 * 512));
  CHECK(descale_for(1e-12f, recipes::vllm_group()) == 1e-10f / 448);
  CHECK(descale_for(1e-6f, recipes::deepseek()) == 1e-4f / 448);
  CHECK(descale_for(0, recipes::deepseek()) == 1e-4f / 448);
  CHECK(descale_for(0, recipes::compressed_tensors()) == 0.0078125f);
  CHECK(descale_for(957, recipes::mx()) == 2);
  CHECK(descale_for(957, recipes::mx_rceil()) == 4);
  CHECK(descale_for(3, recipes::transformer_engine()) == 1 / (448.0f / 3));
  CHECK(descale_for(1e-20f, recipes::torchao_training()) == 1 / (448.0f / 1e-12f));
}

TEST_CASE("A margin is part of the one rounding, also where the quotient alone would be subnormal or overflow") {
  scale_rule rule;
  rule.margin = 40;
  CHECK(descale_for(0x1.23456p-130f, rule) == static_cast<float>(0x1.23456p-130 / 448 * 0x1p40));
  CHECK(descale_for(0x1p-149f, rule) == static_cast<float>(0x1p-109 / 448));
  rule.on_the_way_in = scaling::scale_first;
  CHECK(scale_of<octet::e4m3>(0x1p-130f, rule).multiplier.value() == static_cast<float>(448 * 0x1p90));
}

TEST_CASE(
    "A zero group's descale is bounded too, and a descale without a finite reciprocal still has a finite multiplier") {
  scale_rule rule;
  rule.zero = 1e-40f;
  rule.on_the_way_in = scaling::multiply;
  CHECK(descale_for(0, rule) == 0x1p-126f);
  CHECK(scale_of(octet::descale(1e-40f), scaling::multiply).multiplier.value() == std::numeric_limits<float>::max());
}

TEST_CASE("Powers of two rounded up never clip: amax over the descale is at most the largest value") {
  oracle::random random(3);
  const auto clips = [](auto tag, float amax) {
    using F = decltype(tag);
    const float d = scale_of<F>(amax, with_form(descale_form::e8m0_up)).stored.value();
    return double{amax} / d > octet::decode<double>(F::from_bits(F::max_code));
  };
  std::size_t clipped = 0;
  for (int i = 0; i < 1 << 18; ++i) {
    // Also just above the largest value times a power of two.
    const std::uint64_t bits = random();
    const std::uint32_t near = (i % 2 == 0 ? 0x43E00000u : 0x47600000u) + static_cast<std::uint32_t>(bits % 4) - 1;
    const std::uint32_t word = i % 3 == 0 ? near : 0x20000000u + static_cast<std::uint32_t>(bits % 0x40000000u);
    float amax;
    std::memcpy(&amax, &word, sizeof amax);
    clipped += clips(octet::e4m3{}, amax) + clips(octet::e5m2{}, amax) + clips(octet::e2m1{}, amax);
  }
  CHECK(clipped == 0);
}

TEST_CASE("Reciprocals change a scale into a descale and back") {
  CHECK(octet::reciprocal(octet::descale(0.5f)).value() == 2);
  CHECK(octet::reciprocal(octet::scale(3)).value() == 1.0f / 3);
}

TEST_CASE("A float array is viewed as descales only if each is finite and above zero") {
  const float good[] = {1, 0x1p-126f, 3e38f};
  CHECK(octet::as_descales(good, 3)[2].value() == 3e38f);
  CHECK(octet::as_scales(good, 3)[1].value() == 0x1p-126f);
  CHECK(octet::as_descales(nullptr, 0) == nullptr);
  float memory[2] = {};
  octet::as_descales(memory)[1] = octet::descale(3);
  CHECK(memory[1] == 3);
  CHECK(octet::as_floats(octet::as_descales(memory))[1] == 3);
  CHECK_THROWS_AS(static_cast<void>(octet::as_descales(nullptr, 1)), std::invalid_argument);
  for (float bad :
       {0.0f, -0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const float values[] = {1, 1, bad};
    CHECK_NOTHROW(static_cast<void>(octet::as_descales(values, 2)));
    CHECK_THROWS_WITH(static_cast<void>(octet::as_descales(values, 3)),
                      "octet::as_descales: number 2 is not finite and above zero; there are 3");
    CHECK_THROWS_AS(static_cast<void>(octet::as_scales(values, 3)), std::invalid_argument);
  }
}
