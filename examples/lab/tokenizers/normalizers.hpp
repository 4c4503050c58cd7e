// The normalizers of a tokenizer.json: what is done to the text before it is cut.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/json_file.hpp"
#include "steps.hpp"
#include "unicode.hpp"

namespace lab {

// One after the other, each gives what becomes of the text.
using normalizer = std::function<std::string(const std::string&)>;

inline normalizer read_prepend(const json_field& field) {
  return [prefix = field["prepend"].text()](const std::string& text) { return text.empty() ? text : prefix + text; };
}

inline normalizer read_replace(const json_field& field) {
  return [pattern = read_pattern(field["pattern"]), content = field["content"].text()](const std::string& text) {
    std::string out;
    std::size_t done = 0;
    pattern.each_match(text, [&](std::size_t begin, std::size_t end) {
      out.append(text, done, begin - done).append(content);
      done = end;
    });
    return out.append(text, done);
  };
}

inline std::vector<normalizer> read_normalizers(const json_field& part) {
  static const std::map<std::string, normalizer (*)(const json_field&)> readers = {
      {"NFC", [](const json_field&) { return normalizer(nfc); }}, {"Prepend", read_prepend}, {"Replace", read_replace}};
  std::vector<normalizer> steps;
  each_step(part, "normalizers", [&](const json_field& step) { steps.push_back(step["type"].look_up(readers)(step)); });
  return steps;
}

}  // namespace lab
