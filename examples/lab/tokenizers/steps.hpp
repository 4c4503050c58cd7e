// How the parts of a tokenizer.json are written: a step of some type, or a sequence of steps; and patterns.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "lab/json_file.hpp"
#include "regular_expression.hpp"
#include "unicode.hpp"

namespace lab {

// Calls f for each step of a part, in their order: none where it is null, those under `members` where it is a Sequence.
template <class F>
void each_step(const json_field& part, const char* members, F f) {
  if (part.missing()) return;
  if (part["type"].text() != "Sequence") {
    f(part);
    return;
  }
  const json_field steps = part[members];
  for (std::size_t i = 0; i < steps.list().size(); ++i) each_step(steps[i], members, f);
}

// {"String": "what is looked for as it stands"} or {"Regex": "a regular expression"}.
inline regular_expression read_pattern(const json_field& pattern) {
  const bool regex = pattern["String"].missing();
  const json_field written = pattern[regex ? "Regex" : "String"];
  if (written.text().empty()) throw written.wrong("is empty");
  return {written.text(), regex ? regular_expression::syntax::oniguruma : regular_expression::syntax::literal,
          written.name()};
}

inline const std::string& one_character(const json_field& field) {
  const std::string& text = field.text();
  if (text.empty() || character_bytes(text, 0) != text.size()) throw field.wrong("is not one character");
  return text;
}

}  // namespace lab
