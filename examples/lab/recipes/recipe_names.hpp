// Recipes by name: which values of a model are rounded, to what, and who shares a scale.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lab/failure.hpp"
#include "lab/model/treatment.hpp"
#include "lab/text.hpp"
#include "rounding.hpp"

namespace lab {

// Who shares a descale. Some words mean another shape at another place; see tile_of.
enum class sharing { whole, channel, token, head, block, group128, group32 };

// What happens to the values of one place.
struct recipe_part {
  number_format format = number_format::e4m3;
  sharing shared = sharing::whole;
  scale_source scales = scale_source::found;
  key_treatment as_keys;
};

struct recipe {
  std::string name;
  std::optional<recipe_part> weights, activations, keys, values, softmax;
  bool head = false, residual_bf16 = false;

  key_treatment of_keys() const { return keys ? keys->as_keys : key_treatment(); }
};

// -- The grammar: parts joined by '+'; a part is a place, a format, and further words, joined by '-' ------------------

namespace recipe_words {

// Places, as bits.
enum : unsigned { w = 1, a = 2, k = 4, v = 8, p = 16 };
struct place {
  const char* name;
  unsigned bits;
  const char* meaning;
};
inline constexpr place places[] = {
    {"w", w, "the weights of the layers' seven linears"},
    {"a", a, "the activations that enter them: four tensors a layer"},
    {"k", k, "keys, as they enter the cache"},
    {"v", v, "values, as they enter the cache"},
    {"kv", k | v, "both"},
    {"p", p, "the softmax output; without a further word its numerators exp(s - max) times 256 (INT8: 127)"},
};

// What a word decides; a part decides each thing once.
enum : unsigned { format = 1, shape = 2, scale = 4, rope = 8, centre = 16 };
struct word {
  const char* name;
  unsigned at, decides;
  void (*apply)(recipe_part&);
  const char* meaning;
};
inline constexpr word words[] = {
    {"e4m3", w | a | k | v | p, format, [](recipe_part& r) { r.format = number_format::e4m3; }, "the format E4M3"},
    {"e5m2", w | a | k | v | p, format, [](recipe_part& r) { r.format = number_format::e5m2; }, "the format E5M2"},
    {"int8", w | a | k | v | p, format, [](recipe_part& r) { r.format = number_format::int8; },
     "INT8 with a scale: amax / 127"},
    {"channel", w | k | v, shape, [](recipe_part& r) { r.shared = sharing::channel; },
     "a scale for each output of a weight; for each channel of a KV head over the tokens"},
    {"token", a | k | v | p, shape, [](recipe_part& r) { r.shared = sharing::token; },
     "a scale for each token; in the cache for each KV head of each token; of the softmax for each query and head"},
    {"head", k | v, shape, [](recipe_part& r) { r.shared = sharing::head; }, "a scale for each KV head"},
    {"block", w, shape, [](recipe_part& r) { r.shared = sharing::block; }, "a scale for each 128 x 128 block"},
    {"g128", w, shape, [](recipe_part& r) { r.shared = sharing::group128; }, "a scale for 128 values along the input"},
    {"1x128", a, shape, [](recipe_part& r) { r.shared = sharing::group128; }, "a scale for 128 values of a token"},
    {"1x32", w | a | k | v, shape, [](recipe_part& r) { r.shared = sharing::group32; },
     "a scale for 32 values in a row"},
    {"mx", w | a | k | v, shape | scale,
     [](recipe_part& r) {
       r.shared = sharing::group32;
       r.scales = scale_source::mx;
     },
     "OCP MX: 32 values in a row share a power of two, the exponent of the largest rounded down"},
    {"pow2", w | a | k | v, scale, [](recipe_part& r) { r.scales = scale_source::power_of_two; },
     "scales are powers of two, rounded so that nothing clips"},
    {"noscale", w | a | k | v | p, scale, [](recipe_part& r) { r.scales = scale_source::constant; },
     "no scale: values are rounded as they are, and saturate"},
    {"static", a | k | v, scale, [](recipe_part& r) { r.scales = scale_source::given; },
     "scales from the calibration text, not from the values themselves"},
    {"prerope", k, rope, [](recipe_part& r) { r.as_keys.before_rope = true; },
     "keys are rounded before they are rotated, and rotated when read"},
    {"centred", k, centre, [](recipe_part& r) { r.as_keys.centred = true; },
     "the mean of each channel is taken from the keys first"},
};

// Parts that are one word.
struct flag {
  const char* name;
  bool recipe::*member;
  const char* meaning;
};
inline constexpr flag flags[] = {
    {"head", &recipe::head, "the output head too: its weight as w says, its input as a says"},
    {"residual-bf16", &recipe::residual_bf16, "the sum that runs through the layers is kept in bfloat16"},
};

inline std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> pieces(1);
  for (const char c : text)
    if (c == at)
      pieces.emplace_back();
    else
      pieces.back() += c;
  return pieces;
}

template <class Table>
auto find(const Table& table, const std::string& name) {
  for (const auto& entry : table)
    if (name == entry.name) return &entry;
  return decltype(&table[0]){nullptr};
}

}  // namespace recipe_words

// The tile of a part's descales at its place.
inline tile tile_of(const recipe_part& part, unsigned place, std::size_t head_dim) {
  const bool cached = place == recipe_words::k || place == recipe_words::v;
  switch (part.shared) {
    case sharing::channel:
      return cached ? tile{0, 1} : tile{1, 0};
    case sharing::token:
      return cached ? tile{1, head_dim} : tile{1, 0};
    case sharing::head:
      return {0, head_dim};
    case sharing::block:
      return {128, 128};
    case sharing::group128:
      return {1, 128};
    case sharing::group32:
      return {1, 32};
    default:
      return {0, 0};
  }
}

// The part that a recipe's text says, without its place; a usage error says what cannot be meant.
inline recipe_part parse_recipe_part(const std::string& recipe_name, const std::vector<std::string>& pieces,
                                     const recipe_words::place& place) {
  using namespace recipe_words;
  const auto wrong = [&](const std::string& what) { return usage_error("recipe '" + recipe_name + "': " + what); };
  recipe_part part;
  unsigned decided = 0;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const word* const found = find(recipe_words::words, pieces[i]);
    if (found == nullptr) throw wrong("'" + pieces[i] + "' is no word of --list");
    if ((found->at & place.bits) == 0) throw wrong("'" + pieces[i] + "' means nothing for " + place.name);
    if ((found->decides & decided) != 0) throw wrong("'" + pieces[i] + "' decides again what is decided");
    decided |= found->decides;
    found->apply(part);
  }
  if ((decided & format) == 0) throw wrong(std::string(place.name) + " has no format: e4m3, e5m2 or int8");
  const bool own_scale = part.scales == scale_source::found || part.scales == scale_source::given;
  if (part.format == number_format::int8 && !own_scale) throw wrong("int8 takes its scale from amax / 127");
  if (part.scales == scale_source::constant && (decided & shape) != 0)
    throw wrong("without a scale there is nothing to share");
  const bool per_token =
      part.shared == sharing::token || part.shared == sharing::group128 || part.shared == sharing::group32;
  if (part.scales == scale_source::given && per_token) throw wrong("a scale for a token cannot be static");
  return part;
}

inline recipe parse_recipe(const std::string& name) {
  using namespace recipe_words;
  const auto wrong = [&](const std::string& what) { return usage_error("recipe '" + name + "': " + what); };
  recipe r;
  r.name = name;
  for (const std::string& text : split(name, '+')) {
    if (const flag* const known = find(flags, text)) {
      r.*known->member = true;
      continue;
    }
    const std::vector<std::string> pieces = split(text, '-');
    const place* const where = find(places, pieces[0]);
    if (where == nullptr) throw wrong("'" + pieces[0] + "' is no place: w, a, k, v, kv, p, head or residual-bf16");
    const recipe_part part = parse_recipe_part(name, pieces, *where);
    const std::pair<unsigned, std::optional<recipe_part> recipe::*> members[] = {{w, &recipe::weights},
                                                                                 {a, &recipe::activations},
                                                                                 {k, &recipe::keys},
                                                                                 {v, &recipe::values},
                                                                                 {p, &recipe::softmax}};
    for (const auto& [bit, member] : members) {
      if ((where->bits & bit) == 0) continue;
      if (r.*member) throw wrong("says twice what becomes of " + pieces[0]);
      r.*member = part;
    }
  }
  if (r.head && !r.weights) throw wrong("head needs a w part, which says how its weight is rounded");
  return r;
}

// -- The recipes that have a line of their own -----------------------------------------------------------------------

inline constexpr const char* baseline_name = "baseline";

enum class recipe_group { base, left_to_try, further };
struct named_recipe {
  const char* name;
  recipe_group group;
  const char* meaning;
};
inline constexpr named_recipe named_recipes[] = {
    {"w-e4m3", recipe_group::base, "weights in E4M3, one scale a tensor"},
    {"w-e4m3+a-e4m3", recipe_group::base, "weights and activations"},
    {"w-e4m3+a-e4m3+kv-e4m3", recipe_group::base, "weights, activations and KV cache"},
    {"w-e5m2", recipe_group::base, "weights in E5M2"},
    {"w-e4m3-noscale", recipe_group::base, "weights without a scale"},
    {"w-e4m3-noscale+a-e4m3-noscale", recipe_group::base, "weights and activations without a scale"},
    {"kv-e4m3", recipe_group::left_to_try, "the KV cache alone"},
    {"kv-e4m3-channel", recipe_group::left_to_try, "the KV cache alone, a scale a channel"},
    {"kv-e5m2", recipe_group::left_to_try, "the KV cache alone in E5M2"},
    {"w-int8-g128", recipe_group::left_to_try, "weights in INT8, a scale for 128 values"},
    {"w-e4m3-channel", recipe_group::further, "weights, a scale an output channel"},
    {"w-e4m3-block", recipe_group::further, "weights, a scale a block of 128 x 128"},
    {"w-e4m3-pow2", recipe_group::further, "weights, the scale a power of two"},
    {"w-e4m3-mx", recipe_group::further, "weights as OCP MX has them"},
    {"w-e4m3-channel+a-e4m3-token", recipe_group::further, "a scale an output channel, a scale a token"},
    {"w-e4m3-block+a-e4m3-1x128", recipe_group::further, "as DeepSeek-V3 scales them"},
    {"w-e4m3-mx+a-e4m3-mx", recipe_group::further, "weights and activations as OCP MX has them"},
    {"w-e4m3+a-e4m3-static", recipe_group::further, "activations by scales from a calibration text"},
    {"w-e4m3+head", recipe_group::further, "weights, the output head's too"},
    {"kv-e4m3-head", recipe_group::further, "the KV cache, a scale a head"},
    {"kv-e4m3-token", recipe_group::further, "the KV cache, a scale for each head of each token"},
    {"kv-e4m3-prerope", recipe_group::further, "the KV cache, keys rounded before they are rotated"},
    {"kv-e4m3-noscale", recipe_group::further, "the KV cache without a scale"},
    {"kv-e4m3-static", recipe_group::further, "the KV cache by scales from a calibration text"},
    {"kv-int8", recipe_group::further, "the KV cache in INT8"},
    {"kv-int8-channel", recipe_group::further, "the KV cache in INT8, a scale a channel"},
    {"kv-int8-token", recipe_group::further, "the KV cache in INT8, a scale for each head of each token"},
    {"k-e4m3", recipe_group::further, "keys alone"},
    {"v-e4m3", recipe_group::further, "values alone"},
    {"k-e4m3-centred", recipe_group::further, "keys alone, less each channel's mean"},
    {"k-e4m3-prerope-centred", recipe_group::further, "the same before they are rotated"},
    {"p-e4m3", recipe_group::further, "the softmax, as 256 exp(s - max)"},
    {"p-e4m3-noscale", recipe_group::further, "the softmax without a scale: most of it is flushed where keys are many"},
    {"p-e4m3-token", recipe_group::further, "the softmax, a scale for each query and head"},
    {"residual-bf16", recipe_group::further, "no FP8, but the sum through the layers in bfloat16"},
};

}  // namespace lab
