// Line plots as SVG: panels over one logarithmic axis, with ticks, a legend and marked places.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lab/text.hpp"

namespace lab {

struct curve {
  std::string name;
  std::string colour;  // as CSS has them
  bool dashed = false;
  std::vector<std::pair<double, double>> points;
};

struct panel {
  std::string title;
  bool logarithmic = false;
  double least = 0, most = 1;
  std::vector<std::pair<double, std::string>> ticks;
  std::vector<curve> curves;
};

struct picture {
  std::string title, subtitle, x_title;
  double least = 1, most = 10;                        // powers of ten: the ends of the x axis
  std::vector<std::pair<double, std::string>> marks;  // places on the x axis that have a name
  std::vector<panel> panels;                          // from top to bottom; the first one's curves are the legend
};

namespace svg {

inline std::string escaped(const std::string& s) {
  std::string out;
  for (const char c : s) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

inline std::string label(double x, double y, const std::string& style, const std::string& words) {
  return text("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style.c_str()) + escaped(words) + "</text>\n";
}

inline std::string segment(double x1, double y1, double x2, double y2, const std::string& style) {
  return text("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style.c_str());
}

// 10 with a raised exponent.
inline std::string power_of_ten(double x, double y, int exponent) {
  return text(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">10<tspan dy=\"-5\" font-size=\"10\">%s%d</tspan></text>\n", x,
      y, exponent < 0 ? "&#8722;" : "", exponent < 0 ? -exponent : exponent);
}

// A document of that size, with a white ground; "</svg>" ends it.
inline std::string beginning(double width, double height) {
  return text(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
             "font-family=\"system-ui, 'DejaVu Sans', Arial, sans-serif\" font-size=\"13\" fill=\"#222\">\n",
             width, height, width, height) +
         "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
}

}  // namespace svg

// The picture as an SVG document, black on white, 900 wide.
inline std::string to_svg(const picture& p) {
  using namespace svg;
  constexpr double width = 900, left = 84, right = 24, legend_row = 18, panel_height = 230, between = 66, bottom = 64;
  const double count = static_cast<double>(p.panels.size());

  // The legend, in as many rows as it needs.
  std::string legend;
  double legend_x = left, legend_y = 73;
  for (const curve& c : p.panels.empty() ? std::vector<curve>() : p.panels[0].curves) {
    const double wide = 60 + 7.4 * static_cast<double>(c.name.size());
    if (legend_x > left && legend_x + wide > width) legend_x = left, legend_y += legend_row;
    legend +=
        segment(legend_x, legend_y, legend_x + 26, legend_y,
                "stroke=\"" + c.colour + "\" stroke-width=\"2.4\"" + (c.dashed ? " stroke-dasharray=\"6 4\"" : ""));
    legend += label(legend_x + 32, legend_y + 4.5, "", c.name);
    legend_x += wide;
  }

  const double top = legend_y + 61;
  const double height = top + count * panel_height + (count - 1) * between + bottom;
  const double x0 = std::log10(p.least), x1 = std::log10(p.most);
  const auto across = [&](double x) { return left + (std::log10(x) - x0) / (x1 - x0) * (width - left - right); };

  std::string s = beginning(width, height);
  s += label(left, 30, "font-size=\"18\" font-weight=\"600\"", p.title);
  s += label(left, 51, "fill=\"#555\"", p.subtitle);
  s += legend;

  double panel_top = top;
  for (std::size_t i = 0; i < p.panels.size(); ++i, panel_top += panel_height + between) {
    const panel& q = p.panels[i];
    const double floor = panel_top + panel_height;
    const auto place = [&](double y) { return q.logarithmic ? std::log10(y) : y; };
    const auto up = [&](double y) {
      const double inside = y < q.least ? q.least : y > q.most ? q.most : y;
      return floor - (place(inside) - place(q.least)) / (place(q.most) - place(q.least)) * panel_height;
    };
    s += label(left, panel_top - (i == 0 ? 27 : 10), "font-weight=\"600\"", q.title);
    for (double e = std::ceil(x0 - 1e-9); e <= x1 + 1e-9; ++e) {
      const double x = across(std::pow(10.0, e));
      s += segment(x, panel_top, x, floor, "stroke=\"#e9e9e9\"");
      s += segment(x, floor, x, floor + 5, "stroke=\"#222\"");
      s += power_of_ten(x, floor + 21, static_cast<int>(e));
    }
    for (const auto& [y, words] : q.ticks) {
      s += segment(left, up(y), width - right, up(y), "stroke=\"#e9e9e9\"");
      s += segment(left - 5, up(y), left, up(y), "stroke=\"#222\"");
      s += label(left - 10, up(y) + 4.5, "text-anchor=\"end\"", words);
    }
    for (const auto& [x, words] : p.marks) {
      s += segment(across(x), panel_top, across(x), floor, "stroke=\"#999\" stroke-dasharray=\"2 3\"");
      const bool near_the_end = across(x) > width - right - 70;
      if (i == 0)
        s += label(
            near_the_end ? width - right : across(x), panel_top - 8,
            std::string("font-size=\"12\" fill=\"#666\" text-anchor=") + (near_the_end ? "\"end\"" : "\"middle\""),
            words);
    }
    s += text("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#222\"/>\n", left,
              panel_top, width - left - right, panel_height);
    for (const curve& c : q.curves) {
      s += "<polyline fill=\"none\" stroke=\"" + c.colour + "\" stroke-width=\"2.4\" stroke-linejoin=\"round\"" +
           (c.dashed ? " stroke-dasharray=\"6 4\"" : "") + " points=\"";
      for (const auto& [x, y] : c.points) s += text("%.1f,%.1f ", across(x), up(y));
      s += "\"/>\n";
    }
  }
  s += label((left + width - right) / 2, height - 16, "text-anchor=\"middle\"", p.x_title);
  return s + "</svg>\n";
}

}  // namespace lab
