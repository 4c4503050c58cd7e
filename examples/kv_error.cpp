// What rounding the KV cache does to attention: the error of its output by recipe, on one constructed layer.
// SPDX-License-Identifier: MIT
//
// c++ -std=c++17 -O2 -Iinclude -Iexamples -I/usr/include/eigen3 examples/kv_error.cpp -o kv_error -ltbb
// (CLI11, nlohmann-json, Eigen, oneTBB)
//
// Keys of trained models often have a channel that is far louder than the others. Here there is one by construction, so
// that each way to share a scale shows what it does about it. The recipes are those of quality.cpp.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lab/checks.hpp"
#include "lab/kv_error/constructed_layer.hpp"
#include "lab/kv_error/kv_costs.hpp"
#include "lab/pictures/bar_chart.hpp"
#include "lab/pictures/plot.hpp"
#include "lab/pictures/svg_page.hpp"
#include "lab/program.hpp"
#include "lab/table.hpp"
#include "lab/text.hpp"
#include "lab/whole_file.hpp"

namespace {

using lab::constructed_layer;
using lab::is_less;
using lab::kv_cost;
using lab::kv_costs;
using lab::kv_sweep_step;
using lab::text;
namespace kv = lab::kv;

// The errors on a layer whose loud channel has a mean, and on one where it is wide.
struct two_layers {
  kv_costs offset, wide;
};

// -- The tables ------------------------------------------------------------------------------------------------------

std::string luck_of(const kv_cost& c) { return c.least < c.most ? text("%.1f to %.1f", c.least, c.most) : ""; }

void print_costs(const kv_costs& costs) {
  lab::table table({"keys in", "after RoPE", "by luck", "before RoPE", "by luck", "centred, after RoPE", "before"});
  for (const kv::word& format : kv::formats)
    for (const kv::word& sharing : kv::sharings) {
      const auto cost = [&](const kv::word& way) { return costs.at(kv::keys(format, sharing, way)); };
      const auto error = [&](const kv::word& way) { return text("%.2f", cost(way).error); };
      table.row({text("%s, %s", format.name, sharing.name), error(kv::after), luck_of(cost(kv::after)),
                 error(kv::before), luck_of(cost(kv::before)), error(kv::centred), error(kv::centred_before)});
    }
  table.print();
  std::printf("\nValues instead of keys, per tensor:");
  for (const kv::word& format : kv::formats)
    std::printf("%s %s %.2f", &format == kv::formats ? "" : ",", format.name, costs.at(kv::values(format)).error);
  std::printf(".\n");
}

// The powers of ten; the others are drawn and written.
void print_sweep(const std::vector<kv_sweep_step>& steps, std::map<std::string, double> kv_sweep_step::*errors) {
  const auto row = [&](std::string first, const auto& cell) {
    std::vector<std::string> cells = {std::move(first)};
    for (const kv_sweep_step& s : steps)
      if (s.times[0] == '1') cells.push_back(cell(s));
    return cells;
  };
  lab::table table(row("times the others", [](const kv_sweep_step& s) { return s.times; }));
  for (const kv::word& format : kv::formats)
    for (const kv::word& sharing : kv::sharings)
      table.row(row(text("%s, %s", format.name, sharing.name), [&](const kv_sweep_step& s) {
        return text("%.2f", (s.*errors).at(kv::keys(format, sharing, kv::before)));
      }));
  table.print();
}

// -- The words, chosen by the numbers --------------------------------------------------------------------------------

std::string change(const kv_costs& costs, const std::string& from, const std::string& to) {
  const kv_cost &a = costs.at(from), &b = costs.at(to);
  const char* const words = is_less(b, a)   ? "cuts %.1f to %.1f"
                            : is_less(a, b) ? "raises %.1f to %.1f"
                                            : "not clearly, %.1f to %.1f";
  return text(words, a.error, b.error);
}

// Where recipe `b` is better than recipe `a`.
const char* where_better(const two_layers& layers, const std::string& a, const std::string& b) {
  const bool offset = is_less(layers.offset.at(b), layers.offset.at(a));
  const bool wide = is_less(layers.wide.at(b), layers.wide.at(a));
  return offset && wide ? "on both" : offset ? "on the offset channel" : wide ? "on the wide channel" : "on neither";
}

void print_changes(const two_layers& layers) {
  lab::table table({"", "offset channel", "wide channel"});
  const auto row = [&](const std::string& what, const std::string& from, const std::string& to) {
    table.row({what, change(layers.offset, from, to), change(layers.wide, from, to)});
  };
  row("values in E4M3, not keys", kv::keys(kv::e4m3, kv::tensor), kv::values(kv::e4m3));
  for (const kv::word& format : kv::formats)
    row(text("a scale for each channel, %s", format.name), kv::keys(format, kv::tensor), kv::keys(format, kv::channel));
  for (const kv::word* const sharing : {&kv::tensor, &kv::token})
    row(text("E5M2 for E4M3, %s", sharing->name), kv::keys(kv::e4m3, *sharing), kv::keys(kv::e5m2, *sharing));
  row("a scale for each token and head, E4M3", kv::keys(kv::e4m3, kv::tensor), kv::keys(kv::e4m3, kv::token));
  row("centring, E4M3", kv::keys(kv::e4m3, kv::tensor), kv::keys(kv::e4m3, kv::tensor, kv::centred));
  row("centring before RoPE, E4M3", kv::keys(kv::e4m3, kv::tensor, kv::before),
      kv::keys(kv::e4m3, kv::tensor, kv::centred_before));
  table.print();
}

// The first step of the sweep at which the stored error under recipe `a` is more than so many times that under `b`.
const kv_sweep_step* first_worse(const std::vector<kv_sweep_step>& steps, const std::string& a, double times,
                                 const std::string& b) {
  for (const kv_sweep_step& s : steps)
    if (s.stored.at(a) > times * s.stored.at(b)) return &s;
  return nullptr;
}

void print_verdicts(const two_layers& layers, const std::vector<kv_sweep_step>& steps) {
  const auto helps = [&](const kv::word& format, const kv::word& sharing) {
    return where_better(layers, kv::keys(format, kv::tensor), kv::keys(format, sharing));
  };
  const auto centring_helps = [&](const kv::word& plain, const kv::word& centred) {
    return where_better(layers, kv::keys(kv::e4m3, kv::tensor, plain), kv::keys(kv::e4m3, kv::tensor, centred));
  };
  const auto e5m2_pays = [&](const kv::word& sharing) {
    return where_better(layers, kv::keys(kv::e4m3, sharing), kv::keys(kv::e5m2, sharing));
  };
  const auto from = [](const kv_sweep_step* step) {
    return step == nullptr ? std::string("at no step") : text("from %s times on", step->times.c_str());
  };
  const auto channel_needed = [&](const kv::word& format) {
    const std::string whole = kv::keys(format, kv::tensor, kv::before), own = kv::keys(format, kv::channel, kv::before);
    return from(first_worse(steps, whole, 2, own));
  };
  const std::string e4m3 = kv::keys(kv::e4m3, kv::tensor, kv::before);
  const std::string e5m2 = kv::keys(kv::e5m2, kv::tensor, kv::before);
  const kv_sweep_step* const range_pays = first_worse(steps, e4m3, 1, e5m2);

  std::printf("A scale for each channel helps E4M3 %s, E5M2 %s, INT8 %s. In the sweep\n", helps(kv::e4m3, kv::channel),
              helps(kv::e5m2, kv::channel), helps(kv::int8, kv::channel));
  std::printf("it more than halves the stored error of the others in E4M3 %s, in E5M2 %s,\n",
              channel_needed(kv::e4m3).c_str(), channel_needed(kv::e5m2).c_str());
  std::printf("in INT8 %s: a float is as precise for the small as for the large down to its subnormals;\n",
              channel_needed(kv::int8).c_str());
  std::printf("INT8 has one step for all.\n\n");
  std::printf("E5M2 is better than E4M3 per tensor %s, per token and head %s. Per tensor, its range counts in the\n",
              e5m2_pays(kv::tensor), e5m2_pays(kv::token));
  std::printf("sweep %s", from(range_pays).c_str());
  if (range_pays != nullptr)
    std::printf(", where it stores the others with %.1f %% and E4M3 with %.1f", range_pays->stored.at(e5m2),
                range_pays->stored.at(e4m3));
  std::printf(".\n\nWhat helps E4M3 instead: a scale for each token and head %s; centring %s,\nbefore RoPE %s.\n",
              helps(kv::e4m3, kv::token), centring_helps(kv::after, kv::centred),
              centring_helps(kv::before, kv::centred_before));
}

// -- The picture -----------------------------------------------------------------------------------------------------

std::string drawn(const kv_costs& offset, const std::vector<kv_sweep_step>& steps, const std::string& about) {
  lab::bar_chart bars;
  bars.title = "A constructed layer: attention's error by the recipe of its keys";
  bars.subtitle = about;
  bars.x_title = "error of the attention's output, %; thin lines: by luck";
  const char* const colours[][3] = {
      {"#c8401e", "#c8401e", "#eba995"}, {"#1f5fa8", "#1f5fa8", "#94b8de"}, {"#2f8a4a", "#2f8a4a", "#9bd0aa"}};
  std::vector<lab::curve> stored, attention;
  for (const kv::word& format : kv::formats)
    for (const kv::word& sharing : kv::sharings) {
      for (const kv::word& way : kv::ways) {
        const kv_cost& c = offset.at(kv::keys(format, sharing, way));
        bars.bars.push_back({kv::keys(format, sharing, way), c.error, c.least, c.most, text("%.1f", c.error)});
      }
      lab::curve a{text("%s %s", format.name, sharing.name),
                   colours[&format - kv::formats][&sharing - kv::sharings],
                   &sharing == &kv::channel,
                   {}};
      lab::curve b = a;
      for (const kv_sweep_step& s : steps) {
        a.points.emplace_back(s.factor, s.stored.at(kv::keys(format, sharing, kv::before)));
        b.points.emplace_back(s.factor, s.attention.at(kv::keys(format, sharing, kv::before)));
      }
      stored.push_back(std::move(a));
      attention.push_back(std::move(b));
    }

  const std::vector<std::pair<double, std::string>> ticks = {
      {0.5, "0.5 %"}, {1, "1 %"}, {2, "2 %"}, {5, "5 %"}, {10, "10 %"}, {20, "20 %"}, {50, "50 %"}, {100, "100 %"}};
  lab::picture lines;
  lines.title = "The wide channel from 1 to 1,000,000 times the others";
  lines.subtitle =
      "Queries are divided by as much, so that it counts no more than others do. Keys are rounded before RoPE.";
  lines.x_title = "times the others";
  lines.most = 1e6;
  lines.panels = {{"error of the other channels as stored", true, 0.4, 125, ticks, std::move(stored)},
                  {"error of the attention's output", true, 0.4, 125, ticks, std::move(attention)}};
  return lab::stacked({to_svg(bars), to_svg(lines)});
}

// -- The command line ------------------------------------------------------------------------------------------------

struct request {
  std::string csv, svg;
  std::uint64_t seed = 1, keys = 1024, head_dim = 128, queries = 0;  // 0: as many as keys
};

void answer(const request& r) {
  if (r.keys < 2 || r.keys > 16384) throw lab::usage_error("--keys: " + std::to_string(r.keys) + " is not 2 to 16384");
  if (r.head_dim < 2 || r.head_dim > 1024 || r.head_dim % 2 != 0)
    throw lab::usage_error("--head-dim: " + std::to_string(r.head_dim) + " is no even number from 2 to 1024");
  if (r.queries > r.keys) throw lab::usage_error("--queries: there are only " + std::to_string(r.keys) + " positions");
  lab::expect_outputs({r.csv, r.svg}, {});

  const std::size_t keys = static_cast<std::size_t>(r.keys), head_dim = static_cast<std::size_t>(r.head_dim);
  const std::size_t queries = r.queries != 0 ? static_cast<std::size_t>(r.queries) : keys;
  const std::size_t loud = constructed_layer::channel(head_dim);
  const lab::drawn_head head(r.seed, keys, head_dim);
  lab::kv_ledger numbers;

  std::printf(
      "What rounding the KV cache does to attention\n\n"
      "A constructed layer, no trained one: a head of size %zu; %zu positions with a key and a value each, of which\n"
      "the last %zu have a query, which sees the positions up to its own; RoPE of base 10,000. All are normal numbers\n"
      "(mean 0, deviation 1) but for channel %zu of the keys, which is loud. Errors of the attention's output, in "
      "%%.\n\n"
      "1. The offset channel: 100 + normal\n\n",
      head_dim, keys, queries, loud);
  two_layers layers;
  layers.offset = lab::costs_on({head, {1, 100, 1, 1}, queries}, "offset", numbers);
  print_costs(layers.offset);
  std::printf("\n2. The wide channel: normal x 100, its query x 0.1\n\n");
  layers.wide = lab::costs_on({head, {100, 0, 0.1, 1}, queries}, "wide", numbers);
  print_costs(layers.wide);
  std::printf(
      "\n3. The wide channel from 1 to 1,000,000 times the others, queries divided by as much; keys before RoPE\n\n"
      "Error of the other channels as stored, in %%\n\n");
  const std::vector<kv_sweep_step> steps = lab::swept(head, queries, numbers);
  print_sweep(steps, &kv_sweep_step::stored);
  std::printf("\nError of the attention's output, in %%\n\n");
  print_sweep(steps, &kv_sweep_step::attention);
  std::printf(
      "\n4. What is suggested for an FP8 cache, and what it does here; per tensor, keys after RoPE where not said\n\n");
  print_changes(layers);
  std::printf("\n");
  print_verdicts(layers, steps);
  std::printf(
      "\nDrawn by Philox4x32-10 with seed %llu and integer arithmetic. The recipes are those of examples/quality.\n"
      "Error: root of the sum of squared differences from the unrounded, over the root of the sum of its squares.\n"
      "Before RoPE: keys are rounded before they are rotated. Centred: each channel's mean is taken away first, and\n"
      "added back only before RoPE: softmax does not see what all keys have in common.\n"
      "By luck: the least and the most with descales times 2^(k/8), k = 0 to 7, which other data would have had. What\n"
      "differs by no more than luck, or by less than a fifth, counts as equal. INT8 and tokens have no such luck.\n",
      static_cast<unsigned long long>(r.seed));
  if (!r.csv.empty()) lab::write_whole(r.csv, numbers.str());
  if (r.svg.empty()) return;
  const std::string about =
      text("%zu positions, size %zu, all normal but channel %zu of the keys: 100 + normal. Seed %llu.", keys, head_dim,
           loud, static_cast<unsigned long long>(r.seed));
  lab::write_whole(r.svg, drawn(layers.offset, steps, about));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "What rounding the KV cache does to attention: the error of its output by recipe, on one constructed layer.",
      "kv_error");
  request r;
  auto* const seed = app.add_option("--seed", r.seed, "seed of the generated data (1)");
  auto* const keys = app.add_option("--keys", r.keys, "positions, each with a key and a value (1024)");
  auto* const head_dim = app.add_option("--head-dim", r.head_dim, "values in each (128)");
  auto* const queries = app.add_option("--queries", r.queries, "the last N positions have a query; all if not given");
  auto* const svg = app.add_option("--svg", r.svg, "draw the errors to this file");
  auto* const csv = app.add_option("--csv", r.csv, "write all numbers to this file");
  for (auto* const path : {svg, csv}) path->type_name("FILE")->check(lab::not_empty);
  for (auto* const number : {keys, head_dim, queries}) number->type_name("N")->check(lab::at_least_one);
  seed->type_name("N")->check(lab::whole_number);
  app.footer(
      "Examples:\n"
      "  kv_error --csv numbers.csv --svg errors.svg\n"
      "  kv_error --seed 2 --keys 512 --head-dim 64");
  return lab::run(app, argc, argv, [&] { answer(r); });
}
