// Comma-separated values as RFC 4180 has them.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "table.hpp"

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

// A float's nine significant digits; empty for NaN, which stands for a number that there is none of.
inline std::string csv_number(double x) { return x != x ? std::string() : text("%.9g", x); }

}  // namespace lab
