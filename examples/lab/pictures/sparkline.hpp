// A curve in one line of text: a column of one to eight eighths for each value.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace lab {

// heights: 0 gives a blank, 1 a full column; what lies beyond is cut. UTF-8.
inline std::string sparkline(const std::vector<double>& heights) {
  // U+2581 to U+2588.
  static const char* const columns[] = {" ",
                                        "\xE2\x96\x81",
                                        "\xE2\x96\x82",
                                        "\xE2\x96\x83",
                                        "\xE2\x96\x84",
                                        "\xE2\x96\x85",
                                        "\xE2\x96\x86",
                                        "\xE2\x96\x87",
                                        "\xE2\x96\x88"};
  std::string line;
  for (const double height : heights) {
    const double eighths = height * 8 + 0.5;
    line += columns[eighths >= 8 ? 8 : eighths >= 1 ? static_cast<int>(eighths) : 0];
  }
  return line;
}

}  // namespace lab
