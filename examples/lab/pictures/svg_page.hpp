// Several pictures below each other in one SVG document.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "lab/text.hpp"

namespace lab {

// pictures: documents of to_svg, which are all 900 wide.
inline std::string stacked(const std::vector<std::string>& pictures) {
  std::string inside;
  double height = 0;
  for (const std::string& p : pictures) {
    inside += text("<svg y=\"%.0f\"", height) + p.substr(4);
    height += std::strtod(p.c_str() + p.find(" height=\"") + 9, nullptr);
  }
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"%.0f\" viewBox=\"0 0 900 %.0f\">\n",
              height, height) +
         inside + "</svg>\n";
}

}  // namespace lab
