// A table of text on standard output: the first column to the left, the others to the right, each as wide as it needs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace lab {

class table {
 public:
  explicit table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  void print() const {
    std::vector<std::size_t> widths;
    for (const std::vector<std::string>& cells : rows_)
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i == widths.size()) widths.push_back(0);
        if (cells[i].size() > widths[i]) widths[i] = cells[i].size();
      }
    for (const std::vector<std::string>& cells : rows_) {
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string gap(widths[i] - cells[i].size(), ' ');
        line += i == 0 ? cells[i] + gap : "   " + gap + cells[i];
      }
      line.erase(line.find_last_not_of(' ') + 1);
      std::printf("%s\n", line.c_str());
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lab
