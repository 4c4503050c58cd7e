// A horizontal bar for each of some named numbers, as SVG.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lab/text.hpp"
#include "plot.hpp"

namespace lab {

struct bar {
  std::string name;
  double value = 0;
  double least = 0, most = 0;  // a thin line over the bar; equal: none
  std::string words;           // behind the bar
};

struct bar_chart {
  std::string title, subtitle, x_title;
  std::string colour = "#1f5fa8";
  std::vector<bar> bars;
};

// A round distance between ticks that gives some five of them.
inline double tick_distance(double range) {
  const double unit = std::pow(10.0, std::floor(std::log10(range / 5)));
  for (const double times : {1.0, 2.0, 5.0})
    if (range / (unit * times) <= 6) return unit * times;
  return unit * 10;
}

inline std::string to_svg(const bar_chart& chart) {
  using namespace svg;
  constexpr double width = 900, right = 90, top = 84, row = 26, bottom = 56;
  double longest = 0, least = 0, most = 0;
  for (const bar& b : chart.bars) {
    longest = std::max(longest, static_cast<double>(b.name.size()));
    least = std::min({least, b.value, b.least});
    most = std::max({most, b.value, b.most});
  }
  if (least == most) most = 1;
  const double left = 30 + 7.6 * longest, height = top + row * static_cast<double>(chart.bars.size()) + bottom;
  const double floor = height - bottom + 6;
  const auto across = [&](double x) { return left + (x - least) / (most - least) * (width - left - right); };

  std::string s = beginning(width, height);
  s += label(24, 30, "font-size=\"18\" font-weight=\"600\"", chart.title);
  s += label(24, 51, "fill=\"#555\"", chart.subtitle);
  const double step = tick_distance(most - least);
  for (double k = std::ceil(least / step - 1e-9); k * step <= most * (1 + 1e-9); ++k) {
    const double x = across(k * step);
    s += segment(x, top - 8, x, floor, k == 0 ? "stroke=\"#222\"" : "stroke=\"#e9e9e9\"");
    s += label(x, floor + 17, "text-anchor=\"middle\"", text("%g", k == 0 ? 0 : k * step));
  }
  double y = top;
  for (const bar& b : chart.bars) {
    const double from = std::min(across(0), across(b.value)), to = std::max(across(0), across(b.value));
    s += label(left - 10, y + 13, "text-anchor=\"end\" font-family=\"monospace\" font-size=\"12\"", b.name);
    s += text("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", from, y, to - from, row - 8,
              chart.colour.c_str());
    if (b.least < b.most)
      s += segment(across(b.least), y + (row - 8) / 2, across(b.most), y + (row - 8) / 2,
                   "stroke=\"#222\" stroke-width=\"1.5\"");
    s += label(std::max(to, across(b.most)) + 8, y + 13, "", b.words);
    y += row;
  }
  s += label((left + width - right) / 2, height - 14, "text-anchor=\"middle\"", chart.x_title);
  return s + "</svg>\n";
}

}  // namespace lab
