// The tables and words of the quality sweep.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "lab/csv.hpp"
#include "lab/pictures/bar_chart.hpp"
#include "lab/recipes/observations.hpp"
#include "lab/recipes/recipe_names.hpp"
#include "lab/table.hpp"
#include "lab/text.hpp"
#include "results.hpp"

namespace lab {

inline std::string or_dash(double x, const char* format) { return std::isnan(x) ? "-" : text(format, x); }

// Perplexity and what the recipe changed.
inline void print_text_results(const std::vector<result>& results) {
  const bool any_luck =
      std::any_of(results.begin(), results.end(), [](const result& r) { return !std::isnan(r.luck_least); });
  std::vector<std::string> titles = {"recipe", "perplexity", "change", "nats a token", "KL", "same top token"};
  if (any_luck) titles.push_back("by luck");
  table t(titles);
  for (const result& r : results) {
    const bool base = r.recipe == baseline_name;
    const std::string error = std::isnan(r.nll_change_error) ? "" : text(" +- %.5f", r.nll_change_error);
    const std::string luck = std::isnan(r.luck_least) ? "-" : text("%+.2f to %+.2f %%", r.luck_least, r.luck_most);
    std::vector<std::string> cells = {
        r.recipe,
        or_dash(r.perplexity, "%.4f"),
        base ? "" : or_dash(r.change_percent, "%+.3f %%"),
        base ? "" : or_dash(r.nll_change, "%+.5f") + error,
        base ? "" : or_dash(r.kl, "%.6f"),
        base ? "" : or_dash(100 * r.top1_agreement, "%.2f %%"),
    };
    if (any_luck) cells.push_back(base ? "" : luck);
    t.row(cells);
  }
  t.print();
}

// Multiple choice, where there were questions.
inline void print_question_results(const std::vector<result>& results) {
  table t({"recipe", "right", "95 % interval", "right to wrong", "wrong to right", "McNemar p", ""});
  for (const result& r : results) {
    if (std::isnan(r.accuracy)) continue;
    const bool base = r.recipe == baseline_name;
    const bool is_chance = r.accuracy_least <= r.chance && r.chance <= r.accuracy_most;
    t.row({r.recipe, text("%.1f %%", 100 * r.accuracy),
           text("%.1f to %.1f %%", 100 * r.accuracy_least, 100 * r.accuracy_most),
           base ? "" : text("%.0f", r.right_to_wrong), base ? "" : text("%.0f", r.wrong_to_right),
           base ? "" : text("%.2g", r.mcnemar_p), is_chance ? "may be chance" : ""});
  }
  t.print();
}

// What was lost on the way, by place, for the recipes that lost something.
inline void print_losses(const std::vector<result>& results) {
  table t({"recipe", "place", "flushed to zero", "clipped"});
  bool any = false;
  const auto row = [&](const std::string& recipe, const char* place, double flushed, double clipped) {
    if (!(flushed > 0) && !(clipped > 0)) return;
    t.row({recipe, place, text("%.4f %%", 100 * flushed), text("%.4f %%", 100 * clipped)});
    any = true;
  };
  for (const result& r : results) {
    row(r.recipe, "weights", r.weights_flushed, r.weights_clipped);
    for (std::size_t i = 0; i < sites; ++i) row(r.recipe, site_names[i], r.flushed[i], r.clipped[i]);
  }
  if (any)
    t.print();
  else if (results.size() > 1)
    std::printf("No recipe flushed or clipped anything.\n");
}

// The baseline's magnitudes, all layers together.
inline void print_magnitudes(const observations& seen) {
  table t({"place", "largest", "median", "below 2^-9"});
  for (const site where :
       {site::qkv_input, site::o_input, site::gate_up_input, site::down_input, site::keys, site::values}) {
    const magnitudes& m = seen.of(where);
    t.row({site_names[static_cast<std::size_t>(where)], text("%.4g", static_cast<double>(seen.amax(where))),
           text("%.3g", m.median()), text("%.2f %%", 100 * share(m.below_e4m3(), m.count()))});
  }
  t.print();
}

// The loudest channel of K in each layer, against the median channel.
inline void print_key_channels(const observations& seen) {
  table t({"layer", "largest of K", "its channel", "times the median channel", "mean", "deviation"});
  for (std::size_t layer = 0; layer < seen.layers(); ++layer) {
    const std::vector<observations::channel>& channels = seen.at(site::keys, layer);
    std::vector<float> amaxes;
    for (const observations::channel& c : channels) amaxes.push_back(c.amax);
    const std::size_t loudest =
        static_cast<std::size_t>(std::max_element(amaxes.begin(), amaxes.end()) - amaxes.begin());
    const float largest = amaxes[loudest];
    std::nth_element(amaxes.begin(), amaxes.begin() + static_cast<std::ptrdiff_t>(amaxes.size() / 2), amaxes.end());
    t.row({std::to_string(layer), text("%.4g", static_cast<double>(largest)), std::to_string(loudest),
           largest > 0 ? text("%.2f", static_cast<double>(largest / amaxes[amaxes.size() / 2])) : "-",
           text("%+.3g", seen.mean(site::keys, layer, loudest)),
           text("%.3g", seen.deviation(site::keys, layer, loudest))});
  }
  t.print();
}

// Every channel of K and V.
inline std::string channels_csv(const observations& seen) {
  csv file({"place", "layer", "channel", "amax", "mean", "deviation"});
  for (const site where : {site::keys, site::values})
    for (std::size_t layer = 0; layer < seen.layers(); ++layer)
      for (std::size_t c = 0; c < seen.at(where, layer).size(); ++c)
        file.row({site_names[static_cast<std::size_t>(where)], std::to_string(layer), std::to_string(c),
                  csv_number(static_cast<double>(seen.at(where, layer)[c].amax)),
                  csv_number(seen.mean(where, layer, c)), csv_number(seen.deviation(where, layer, c))});
  return file.str();
}

// What the numbers say: which recipes cost nothing that this text shows, and which cost something.
inline void print_verdict(const std::vector<result>& results) {
  std::string lost, equal;
  for (const result& r : results) {
    if (r.recipe == baseline_name || std::isnan(r.nll_change_error)) continue;
    std::string& list = std::fabs(r.nll_change) > 2 * r.nll_change_error ? lost : equal;
    list += (list.empty() ? "" : ", ") + r.recipe;
  }
  if (!equal.empty()) std::printf("\nWithin two standard errors of the baseline: %s.\n", equal.c_str());
  if (!lost.empty()) std::printf("\nChanged by more than that: %s.\n", lost.c_str());
}

// What the columns mean.
inline constexpr const char* legend =
    R"(Change: of the perplexity. Nats a token: what each token's negative log-likelihood changed by in the mean, +- its standard
error. KL: how far the recipe's predictions lie from the baseline's, also in nats. Same top token: where both find the same
token likeliest. Right to wrong: answers the recipe lost; p: how likely flips so one-sided are by chance (McNemar). May be
chance: the interval holds what guessing gets. --protocol has the rest, --list the recipes; --luck shows which differences
other scales, as good as these, would make by themselves.
)";

// The order of the recipes by KL, and which neighbours in it luck does not tell apart.
inline void print_ranking(const std::vector<result>& results) {
  std::vector<result> ranked;
  for (const result& r : results)
    if (r.recipe != baseline_name && !std::isnan(r.kl)) ranked.push_back(r);
  if (ranked.empty()) return;
  std::sort(ranked.begin(), ranked.end(), [](const result& a, const result& b) { return a.kl < b.kl; });
  std::string order;
  for (const result& r : ranked) order += (order.empty() ? "" : ", ") + r.recipe;
  std::printf("\nBy KL, the least first: %s.\n", order.c_str());
  for (std::size_t i = 1; i < ranked.size(); ++i) {
    const result &a = ranked[i - 1], &b = ranked[i];
    const double spread = std::fmax(a.luck_most - a.luck_least, b.luck_most - b.luck_least);
    const double difference = std::fabs(a.change_percent - b.change_percent);
    if (difference <= spread)
      std::printf("%s and %s are equal in perplexity: they differ by %.2f points, and luck alone by %.2f.\n",
                  a.recipe.c_str(), b.recipe.c_str(), difference, spread);
  }
}

inline std::string drawn(const std::vector<result>& results) {
  bar_chart chart;
  chart.title = "What a recipe costs";
  chart.x_title = "change of perplexity, %";
  for (const result& r : results) {
    if (r.recipe == baseline_name) {
      chart.subtitle = text("Baseline: perplexity %.3f over %.0f predictions. Thin lines: two standard errors.",
                            r.perplexity, r.predictions);
      continue;
    }
    if (std::isnan(r.change_percent)) continue;
    bar b;
    b.name = r.recipe;
    b.value = r.change_percent;
    const auto percent = [](double nats) { return 100 * std::expm1(nats); };
    if (!std::isnan(r.nll_change_error)) {
      b.least = percent(r.nll_change - 2 * r.nll_change_error);
      b.most = percent(r.nll_change + 2 * r.nll_change_error);
    }
    b.words = text("%+.2f", r.change_percent);
    chart.bars.push_back(b);
  }
  return to_svg(chart);
}

}  // namespace lab
