// Error over magnitude: what E4M3 and E5M2 make of data from 1e-6 to 1e3, in a few lines of text and as a picture.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "lab/draws.hpp"
#include "lab/pictures/plot.hpp"
#include "lab/pictures/sparkline.hpp"
#include "lab/text.hpp"
#include "outcome.hpp"

namespace lab {

// Twelve figures a decade from 1e-6 to 1e3, and what E4M3 and E5M2 make of an octave around each.
struct sweep {
  static constexpr int steps_per_decade = 12, decades = 9;
  std::vector<double> figures;
  struct line {
    const char *name, *format, *granularity, *colour;
    bool dashed;
    std::vector<double> errors, flushed;
  };
  std::vector<line> lines{{"E4M3 without scale", "e4m3", "no scale", "#c8401e", false, {}, {}},
                          {"E4M3 per tensor", "e4m3", "per tensor", "#c8401e", true, {}, {}},
                          {"E5M2 without scale", "e5m2", "no scale", "#1f5fa8", false, {}, {}},
                          {"E5M2 per tensor", "e5m2", "per tensor", "#1f5fa8", true, {}, {}}};

  sweep(source from, ledger& numbers) {
    constexpr std::int64_t log2_of_10 = 7133786264;  // Q31
    for (int i = 0; i <= steps_per_decade * decades; ++i) {
      const double figure = exp2((i - 6 * steps_per_decade) * log2_of_10 / steps_per_decade);
      figures.push_back(figure);
      const std::vector<float> values = octave({from.seed, from.stream + static_cast<std::uint64_t>(i)}, figure, 8192);
      const outcome outcomes[] = {
          without_scale<octet::e4m3>(whole(values)), with_scales<octet::e4m3>(whole(values), octet::per_tensor{}),
          without_scale<octet::e5m2>(whole(values)), with_scales<octet::e5m2>(whole(values), octet::per_tensor{})};
      for (std::size_t k = 0; k < lines.size(); ++k) {
        const octet::statistics& s = outcomes[k].statistics;
        lines[k].errors.push_back(s.mean_relative_error());
        lines[k].flushed.push_back(static_cast<double>(s.flushed) / static_cast<double>(s.count));
        numbers.add("sweep", text("%.6g", figure), lines[k].format, lines[k].granularity, outcomes[k]);
      }
    }
  }

  // Every other figure: 55 columns.
  void print() const {
    std::printf("%-20s%s\n", "", "1e-6        1e-4        1e-2        1           1e2   1e3");
    for (const line& l : lines) {
      std::vector<double> heights;
      for (std::size_t i = 0; i < l.errors.size(); i += 2) heights.push_back(1 + std::log10(l.errors[i]) / 2);
      std::printf("%-20s%s\n", l.name, sparkline(heights).c_str());
    }
  }

  std::string drawn(std::uint64_t seed) const {
    picture p;
    p.title = "What FP8 makes of a magnitude, with and without a scale";
    p.subtitle = text("8,192 values in one octave around each magnitude, random signs; Philox4x32-10, seed %llu",
                      static_cast<unsigned long long>(seed));
    p.x_title = "magnitude of the data";
    p.least = 1e-6, p.most = 1e3;
    p.marks = {{1.0 / 131072, "E5M2: zero below 7.6e-6"},
               {1.0 / 1024, "E4M3: zero below 0.00098"},
               {448, "E4M3: at most 448"}};
    panel errors{
        "mean relative error",
        true,
        0.01,
        1.25,
        {{0.01, "1 %"}, {0.02, "2 %"}, {0.05, "5 %"}, {0.1, "10 %"}, {0.2, "20 %"}, {0.5, "50 %"}, {1, "100 %"}},
        {}};
    panel flushed{"values flushed to zero",
                  false,
                  0,
                  1.04,
                  {{0, "0 %"}, {0.25, "25 %"}, {0.5, "50 %"}, {0.75, "75 %"}, {1, "100 %"}},
                  {}};
    for (const line& l : lines) {
      curve e{l.name, l.colour, l.dashed, {}}, f = e;
      for (std::size_t i = 0; i < figures.size(); ++i) {
        e.points.emplace_back(figures[i], l.errors[i]);
        f.points.emplace_back(figures[i], l.flushed[i]);
      }
      errors.curves.push_back(std::move(e));
      flushed.curves.push_back(std::move(f));
    }
    p.panels = {std::move(errors), std::move(flushed)};
    return to_svg(p);
  }
};

}  // namespace lab
