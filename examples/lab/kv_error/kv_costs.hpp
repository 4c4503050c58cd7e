// What recipes for the KV cache cost on a constructed layer, and while one channel of its keys grows louder.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "constructed_layer.hpp"
#include "lab/csv.hpp"
#include "lab/recipes/recipe_names.hpp"
#include "lab/text.hpp"

namespace lab {

// What a recipe for keys is made of, in words and in its name.
namespace kv {

struct word {
  const char *name, *in_recipe;
};
inline constexpr word formats[] = {{"E4M3", "e4m3"}, {"E5M2", "e5m2"}, {"INT8", "int8"}};
inline constexpr word sharings[] = {{"per tensor", ""}, {"per channel", "-channel"}, {"per token and head", "-token"}};
inline constexpr word ways[] = {
    {"after RoPE", ""}, {"before RoPE", "-prerope"}, {"centred", "-centred"}, {"centred before", "-prerope-centred"}};
inline constexpr const word &e4m3 = formats[0], &e5m2 = formats[1], &int8 = formats[2];
inline constexpr const word &tensor = sharings[0], &channel = sharings[1], &token = sharings[2];
inline constexpr const word &after = ways[0], &before = ways[1], &centred = ways[2], &centred_before = ways[3];

inline std::string keys(const word& format, const word& sharing, const word& way = after) {
  return std::string("k-") + format.in_recipe + sharing.in_recipe + way.in_recipe;
}
inline std::string values(const word& format) { return std::string("v-") + format.in_recipe; }

// Whether a recipe has luck: other descales that would do as well. A larger one is a coarser one in INT8; a token's
// largest value has a code of its own, but by another descale; without means there is less to lose.
inline bool has_luck(const word& format, const word& sharing, const word& way) {
  return &format != &int8 && &sharing != &token && (&way == &after || &way == &before);
}

}  // namespace kv

// An error in %, and the least and the most with descales times 2^(k/8), k = 0 to 7.
struct kv_cost {
  double error, least, most;
  explicit kv_cost(double e) : error(e), least(e), most(e) {}
  void also(double e) {
    if (e < least) least = e;
    if (e > most) most = e;
  }
};

// What differs by less than a fifth, or by no more than luck, is equal.
inline bool is_less(const kv_cost& a, const kv_cost& b) { return a.most < b.least && a.error < 0.8 * b.error; }

// By the names of recipes.
using kv_costs = std::map<std::string, kv_cost>;

class kv_ledger {
 public:
  void add(const char* layer, const std::string& recipe, int eighths, const std::string& times,
           const std::string& stored, double error) {
    file_.row({layer, recipe, std::to_string(eighths), times, stored, csv_number(error, 4)});
  }
  const std::string& str() const { return file_.str(); }

 private:
  csv file_{{"layer", "recipe", "eighths", "times", "stored_error_percent", "attention_error_percent"}};
};

// Of every recipe.
inline kv_costs costs_on(const constructed_layer& layer, const char* name, kv_ledger& numbers) {
  kv_costs all;
  const auto error_of = [&](const std::string& recipe, int eighths) {
    const double error = 100 * layer.attention_error(parse_recipe(recipe), eighths);
    numbers.add(name, recipe, eighths, "", "", error);
    return error;
  };
  for (const kv::word& format : kv::formats) {
    for (const kv::word& sharing : kv::sharings)
      for (const kv::word& way : kv::ways) {
        const std::string recipe = kv::keys(format, sharing, way);
        kv_cost& cost = all.emplace(recipe, error_of(recipe, 0)).first->second;
        for (int eighths = 1; eighths < 8 && kv::has_luck(format, sharing, way); ++eighths)
          cost.also(error_of(recipe, eighths));
      }
    all.emplace(kv::values(format), error_of(kv::values(format), 0));
  }
  return all;
}

// One channel so many times the others. Keys are rounded before RoPE, which would make its partner loud too.
struct kv_sweep_step {
  std::string times;
  double factor;
  std::map<std::string, double> stored, attention;  // errors in %, of the other channels and of the output
};

// 1, 2, 5, 10, ... 1,000,000 times; queries are divided by as much, so that the channel counts no more than others do.
inline std::vector<kv_sweep_step> swept(const drawn_head& head, std::size_t queries, kv_ledger& numbers) {
  std::vector<kv_sweep_step> steps;
  for (int i = 0; i <= 18; ++i) {
    double factor = i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 5;
    for (int decade = 0; decade < i / 3; ++decade) factor *= 10;
    kv_sweep_step step{text("%.0f", factor), factor, {}, {}};
    const constructed_layer layer(head, {factor, 0, 1 / factor, 1 / factor}, queries);
    for (const kv::word& format : kv::formats)
      for (const kv::word& sharing : kv::sharings) {
        const std::string name = kv::keys(format, sharing, kv::before);
        const recipe r = parse_recipe(name);
        const double stored = step.stored[name] = 100 * layer.stored_error(*r.keys);
        const double error = step.attention[name] = 100 * layer.attention_error(r);
        numbers.add("swept", name, 0, step.times, csv_number(stored, 4), error);
      }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace lab
