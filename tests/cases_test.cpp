// Known results: conversions, the tables of cases.hpp, and the cases in which scaling went wrong in the field.
// SPDX-License-Identifier: MIT
#include "cases.hpp"

#include <sstream>
#include <string>

#include "catch.hpp"
#include "formats.hpp"
#include "octet/quantize.hpp"

namespace {

octet::overflow overflow_of(const std::string& name) {
  return name == "saturate" ? octet::overflow::saturate : octet::overflow::nonfinite;
}

octet::rounding rounding_of(const std::string& name) {
  return name == "toward_zero" ? octet::rounding::toward_zero
         : name == "upward"    ? octet::rounding::upward
                               : octet::rounding::nearest_even;
}

// The format of a name among the 13.
template <class Visit>
void with_format(const std::string& name, Visit&& visit) {
  bool found = false;
  for_each_format([&](auto tag, const oracle::table& table) {
    if (name != table.about.name) return;
    found = true;
    visit(tag);
  });
  REQUIRE(found);
}

}  // namespace

TEST_CASE("every listed input encodes to its listed code") {
  int rows = 0;
  for (const cases::encoding& group : cases::encodings) {
    INFO(group.format << " " << group.overflow << " " << group.rounding << " from " << group.source);
    with_format(group.format, [&](auto tag) {
      using F = typename decltype(tag)::type;
      const octet::overflow o = overflow_of(group.overflow);
      const octet::rounding r = rounding_of(group.rounding);
      std::istringstream words(group.rows);
      for (std::string word; words >> word; ++rows) {
        std::size_t end = 0;
        const std::uint64_t bits = std::stoull(word, &end, 16);
        const unsigned long code = std::stoul(word.substr(end + 1), nullptr, 16);
        F q;
        if (std::string(group.source) == "float")
          q = octet::encode<F>(octet::bit_cast<float>(static_cast<std::uint32_t>(bits)), o, r);
        else
          q = octet::encode<F>(octet::bit_cast<double>(bits), o, r);
        INFO(word);
        CHECK(q.bits() == code);
      }
    });
  }
  CHECK(rows == cases::encoding_rows);
}

TEST_CASE("every listed code decodes to its listed float") {
  int rows = 0;
  for (const cases::decoding& group : cases::decodings) {
    INFO(group.format);
    with_format(group.format, [&](auto tag) {
      using F = typename decltype(tag)::type;
      std::istringstream words(group.rows);
      unsigned code = 0;
      for (std::string word; words >> word; ++code, ++rows) {
        const F q = F::from_bits(static_cast<std::uint8_t>(code));
        const std::uint32_t bits = octet::bit_cast<std::uint32_t>(octet::decode(q));
        INFO("code " << code << ", " << word);
        if (word == "nan") {
          CHECK(isnan(q));
          CHECK(bits == (F::is_signed ? 0x7FFFFFFFu : 0x7FFF0000u));
        } else {
          CHECK(bits == std::stoul(word, nullptr, 16));
        }
      }
      CHECK(code == 1u << F::width);
    });
  }
  CHECK(rows == cases::decoding_rows);
}

TEST_CASE("the oracle agrees with every listed conversion") {
  for (const cases::encoding& group : cases::encodings) {
    INFO(group.format << " " << group.overflow << " " << group.rounding << " from " << group.source);
    for (std::size_t i = 0; i < std::size(oracle::formats); ++i) {
      if (std::string(group.format) != oracle::formats[i].name) continue;
      const bool saturate = std::string(group.overflow) == "saturate";
      const oracle::mode mode = oracle_mode(rounding_of(group.rounding));
      std::istringstream words(group.rows);
      for (std::string word; words >> word;) {
        std::size_t end = 0;
        const std::uint64_t bits = std::stoull(word, &end, 16);
        const unsigned long code = std::stoul(word.substr(end + 1), nullptr, 16);
        INFO(word);
        if (std::string(group.source) == "float")
          CHECK(oracle::of(i).encode(octet::bit_cast<float>(static_cast<std::uint32_t>(bits)), mode, saturate) == code);
        else
          CHECK(oracle::of(i).encode(octet::bit_cast<double>(bits), mode, saturate) == code);
      }
    }
  }
  for (const cases::decoding& group : cases::decodings) {
    INFO(group.format);
    for (std::size_t i = 0; i < std::size(oracle::formats); ++i) {
      if (std::string(group.format) != oracle::formats[i].name) continue;
      std::istringstream words(group.rows);
      unsigned code = 0;
      for (std::string word; words >> word; ++code) {
        const double value = oracle::of(i).all[code];
        INFO("code " << code << ", " << word);
        if (word == "nan")
          CHECK(std::isnan(value));
        else
          CHECK(octet::bit_cast<std::uint32_t>(static_cast<float>(value)) == std::stoul(word, nullptr, 16));
      }
    }
  }
}

// -- Scales ----------------------------------------------------------------------------------------------------

namespace {

using octet::descale;
using octet::descale_form;
using octet::e4m3;
using octet::e8m0;
using octet::scale_rule;
using octet::scaling;

scale_rule rule_of(descale_form form, scaling how = scaling::divide) {
  scale_rule rule;
  rule.form = form;
  rule.on_the_way_in = how;
  return rule;
}

// One group of values: its descale and codes.
template <class F, std::size_t N>
descale quantize_group(const float (&values)[N], F (&codes)[N], const scale_rule& rule = scale_rule()) {
  descale d(0);
  octet::quantize_into(octet::matrix_view<const float>(values, 1, N), octet::per_tensor{}, rule,
                       octet::matrix_view<F>(codes, 1, N), &d);
  return d;
}

// Both a descale and its reciprocal are to be finite and above zero.
bool is_usable(descale d) {
  const float x = d.value(), y = reciprocal(d).value();
  return std::isfinite(x) && x > 0 && std::isfinite(y) && y > 0;
}

}  // namespace

TEST_CASE("a group of zeros has a usable descale, and its codes are signed zeros") {
  e4m3 codes[3];
  const descale d = quantize_group({0.0f, -0.0f, 0.0f}, codes);
  CHECK(d.value() == 1.0f);
  CHECK(codes[0].bits() == 0x00);
  CHECK(codes[1].bits() == 0x80);
}

TEST_CASE("an amax for which largest / amax overflows float has a usable descale and scale") {
  // The first amax for which the quotient is finite is one unit above these.
  for (const float amax : {0x1p-149f, 0x1p-140f, 0x1p-126f, 0x1.cp-120f, 0x1.c00002p-120f}) {
    for (const scaling how : {scaling::divide, scaling::multiply, scaling::scale_first}) {
      INFO(amax);
      const octet::group_scale s = octet::scale_of<e4m3>(amax, rule_of(descale_form::float32, how));
      CHECK(is_usable(s.stored));
      CHECK(std::isfinite(s.multiplier.value()));
      e4m3 codes[2];
      CHECK(is_usable(quantize_group({amax, -amax}, codes, rule_of(descale_form::float32, how))));
      CHECK(isfinite(codes[0]));
      CHECK(isfinite(codes[1]));
    }
  }
  for (const float amax : {0x1.cp-113f, 0x1.c00002p-113f}) {
    CHECK(is_usable(octet::scale_of<octet::e5m2>(amax, scale_rule()).stored));
    CHECK(is_usable(octet::scale_of<octet::e5m2>(amax, rule_of(descale_form::float32, scaling::scale_first)).stored));
  }
}

TEST_CASE("a subnormal descale that is an eighth off saturates, and gives no NaN") {
  const float x = 0x1p-140f;
  const descale d(0x1p-149f);  // the nearest float to x / 448
  e4m3 code{};
  octet::quantize_into(octet::matrix_view<const float>(&x, 1, 1), octet::per_tensor{}, &d,
                       octet::matrix_view<e4m3>(&code, 1, 1));
  CHECK(code.bits() == 0x7E);
}

TEST_CASE("values are divided by the descale, and only a recipe that says so multiplies by a reciprocal") {
  const float values[] = {1.3671875f, 3.0625f};
  e4m3 codes[2];
  quantize_group(values, codes);
  CHECK(codes[0].bits() == 0x74);  // 200, a tie, to the even code
  quantize_group(values, codes, rule_of(descale_form::float32, scaling::scale_first));
  CHECK(codes[0].bits() == 0x75);  // 448 / 3.0625 rounded gives 200.00002
}

TEST_CASE("one row, to the bit") {
  const float values[] = {3.0625f, 1.3671875f, -0.001f, 0, 1e-7f, -3.0625f};
  e4m3 codes[6];
  const descale d = quantize_group(values, codes);
  CHECK(octet::bit_cast<std::uint32_t>(d.value()) == 0x3BE00000);
  const unsigned wanted[] = {0x7E, 0x74, 0xA1, 0x00, 0x00, 0xFE};
  for (int i = 0; i < 6; ++i) CHECK(codes[i].bits() == wanted[i]);
  float back[6];
  octet::dequantize_into(octet::quantized_view<e4m3, octet::per_tensor>{{codes, 1, 6}, &d, {}},
                         octet::matrix_view<float>(back, 1, 6));
  CHECK(back[0] == 3.0625f);
  CHECK(back[1] == 1.3125f);
  CHECK(back[2] == -0.140625f * 0.0068359375f);
  CHECK(back[3] == 0);
  CHECK(back[5] == -3.0625f);
}

TEST_CASE("the floor rule of OCP MX clips the top of a binade, and the rule that rounds up does not") {
  e4m3 codes[2];
  const descale floor = quantize_group({957.0f, 1.0f}, codes, rule_of(descale_form::e8m0_floor));
  CHECK(e8m0(floor.value()).bits() == 0x80);
  CHECK(codes[0].bits() == 0x7E);
  CHECK(octet::decode(codes[0]) * floor.value() == 896.0f);
  const descale up = quantize_group({957.0f, 1.0f}, codes, rule_of(descale_form::e8m0_up));
  CHECK(e8m0(up.value()).bits() == 0x81);
  CHECK(codes[0].bits() == 0x77);
  CHECK(octet::decode(codes[0]) * up.value() == 960.0f);
  octet::e2m1 small[2];
  const descale half = quantize_group({2.7f, 1.0f}, small, rule_of(descale_form::e8m0_up));
  CHECK(e8m0(half.value()).bits() == 0x7E);
  CHECK(small[0].bits() == 0x07);
  CHECK(octet::decode(small[0]) * half.value() == 3.0f);
}

TEST_CASE("a power-of-two scale rounds up by bits: not by a logarithm, and not past an exact power") {
  CHECK(octet::encode<e8m0>(0x1.000002p+4f).bits() == 0x84);
  CHECK(octet::encode<e8m0>(4.0f).bits() == 0x81);
  CHECK(octet::scale_of<e4m3>(448 * 0x1.000002p+4f, rule_of(descale_form::e8m0_up)).stored.value() == 32.0f);
  CHECK(octet::scale_of<e4m3>(448 * 4.0f, rule_of(descale_form::e8m0_up)).stored.value() == 4.0f);
}

TEST_CASE("a block scale that is an E4M3 code saturates") {
  CHECK(octet::encode<e4m3>(480.0f).bits() == 0x7E);
  CHECK(octet::scale_of<e4m3>(480.0f * 448, rule_of(descale_form::e4m3_code)).stored.value() == 448.0f);
}

TEST_CASE("a byte of E4M3 means half as much in E4M3FNUZ, and -0 means NaN") {
  CHECK(octet::decode(e4m3::from_bits(0x38)) == 1.0f);
  CHECK(octet::decode(octet::e4m3fnuz::from_bits(0x38)) == 0.5f);
  CHECK(octet::decode(e4m3::from_bits(0x80)) == 0.0f);
  CHECK(isnan(octet::e4m3fnuz::from_bits(0x80)));
}

TEST_CASE("1000 rows in blocks of 128 are 8 blocks, the last of 104 rows") {
  constexpr octet::per_block<128, 128> blocks;
  const octet::tiling t = blocks.tiles(1000, 128);
  CHECK(t.rows.count(1000) == 8);
  CHECK(t.cols.count(128) == 1);
  CHECK(t.rows.end(6, 1000) == 896);
  CHECK(t.rows.end(7, 1000) == 1000);
  CHECK(octet::descale_count(blocks, 1000, 128) == 8);
}

TEST_CASE("a NaN in the data makes amax NaN or is left out, as the policy says, and is counted") {
  const float values[] = {1, std::numeric_limits<float>::quiet_NaN(), 2};
  CHECK(std::isnan(octet::amax(values, 3, octet::nonfinite::propagate)));
  CHECK(octet::amax(values, 3, octet::nonfinite::ignore) == 2.0f);
  for (const octet::nonfinite policy : {octet::nonfinite::propagate, octet::nonfinite::ignore}) {
    scale_rule rule;
    rule.on_nonfinite = policy;
    e4m3 codes[3];
    descale d(0);
    const std::size_t not_finite =
        octet::quantize_into(octet::matrix_view<const float>(values, 1, 3), octet::per_tensor{}, rule,
                             octet::matrix_view<e4m3>(codes, 1, 3), &d);
    CHECK(not_finite == 1);
    CHECK(isnan(codes[1]));
    CHECK(std::isnan(d.value()) == (policy == octet::nonfinite::propagate));
    if (policy == octet::nonfinite::ignore) CHECK(d.value() == 2.0f / 448);
  }
}

TEST_CASE("an infinity in the data does not drive the scale to zero") {
  const float values[] = {1, -std::numeric_limits<float>::infinity()};
  e4m3 codes[2];
  const descale d = quantize_group(values, codes);
  CHECK(is_usable(d));
  CHECK(d.value() == 1.0f / 448);
  CHECK(codes[0].bits() == 0x7E);
  CHECK(codes[1].bits() == 0xFE);
}

TEST_CASE("the ends of E8M0 are a subnormal and a NaN") {
  CHECK(octet::bit_cast<std::uint32_t>(octet::decode(e8m0::from_bits(0x00))) == 0x00400000);
  CHECK(std::isnan(octet::decode(e8m0::from_bits(0xFF))));
}
