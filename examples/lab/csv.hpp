// Comma-separated values as RFC 4180 has them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "text.hpp"

namespace lab {

class csv {
 public:
  explicit csv(const std::vector<std::string>& header) { row(header); }

  void row(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i != 0) text_ += ',';
      if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
        text_ += cells[i];
      } else {
        text_ += '"';
        for (const char c : cells[i]) text_ += c == '"' ? std::string("\"\"") : std::string(1, c);
        text_ += '"';
      }
    }
    text_ += '\n';
  }

  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

// The rows of such a text.
inline std::vector<std::vector<std::string>> csv_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  bool quoted = false, begins = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins) rows.push_back({""});
    begins = false;
    std::string& cell = rows.back().back();
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      cell += text[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (quoted || (c != ',' && c != '\n' && c != '\r'))
      cell += c;
    else if (c == ',')
      rows.back().emplace_back();
    else if (c == '\n')
      begins = true;
  }
  return rows;
}

// A float's nine significant digits, or so many decimals; empty for NaN and infinity, which stand for no number.
inline std::string csv_number(double x) { return std::isfinite(x) ? text("%.9g", x) : ""; }
inline std::string csv_number(double x, int decimals) { return std::isfinite(x) ? text("%.*f", decimals, x) : ""; }

}  // namespace lab
