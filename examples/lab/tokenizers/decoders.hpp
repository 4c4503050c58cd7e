// The decoders of a tokenizer.json: how tokens become text again.
// SPDX-License-Identifier: MIT
#pragma once

#include <cctype>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "byte_level.hpp"
#include "lab/json_file.hpp"
#include "lab/text.hpp"
#include "steps.hpp"

namespace lab {

// One after the other, each changes the tokens; at last they are joined.
using decoder = std::function<void(std::vector<std::string>&)>;

// The byte that a token such as "<0x0A>" stands for.
inline std::optional<char> byte_of_fallback(const std::string& token) {
  const bool byte = token.size() == 6 && token.compare(0, 3, "<0x") == 0 && token[5] == '>' &&
                    std::isxdigit(static_cast<unsigned char>(token[3])) != 0 &&
                    std::isxdigit(static_cast<unsigned char>(token[4])) != 0;
  if (!byte) return std::nullopt;
  return static_cast<char>(std::stoi(token.substr(3, 2), nullptr, 16));
}

inline std::string joined(const std::vector<std::string>& tokens, const std::string& between) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) text.append(i > 0 ? between : "").append(tokens[i]);
  return text;
}

// Where a token holds what is no letter of the byte alphabet, it stands for itself.
inline decoder read_byte_level_decoder(const json_field&) {
  return [](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) token = bytes_of_byte_level(token).value_or(token);
  };
}

inline decoder read_byte_fallback_decoder(const json_field&) {
  return [](std::vector<std::string>& tokens) {
    for (std::string& token : tokens)
      if (const std::optional<char> byte = byte_of_fallback(token)) token = {*byte};
  };
}

inline decoder read_fuse_decoder(const json_field&) {
  return [](std::vector<std::string>& tokens) { tokens = {joined(tokens, "")}; };
}

inline decoder read_replace_decoder(const json_field& field) {
  const json_field from = field["pattern"]["String"];
  if (!field["pattern"]["Regex"].missing()) throw field["pattern"]["Regex"].not_read();
  if (from.text().empty()) throw from.wrong("is empty");
  return [from = from.text(), to = field["content"].text()](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) token = replaced(token, from, to);
  };
}

// Takes at most `start` characters from the front of each token, and `stop` from its end, if they are the given one.
inline decoder read_strip_decoder(const json_field& field) {
  return [c = one_character(field["content"]), start = field["start"].count(),
          stop = field["stop"].count()](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      for (int i = 0; i < start && token.compare(0, c.size(), c) == 0; ++i) token.erase(0, c.size());
      const auto ends = [&] {
        return token.size() >= c.size() && token.compare(token.size() - c.size(), c.size(), c) == 0;
      };
      for (int i = 0; i < stop && ends(); ++i) token.erase(token.size() - c.size());
    }
  };
}

// Marks become spaces, but those of the first token nothing, if one was put before the text.
inline decoder read_metaspace_decoder(const json_field& field) {
  const json_field scheme = field["prepend_scheme"];
  const bool prefixed = field["add_prefix_space"].flag(true) && (scheme.missing() || scheme.text() != "never");
  return [mark = one_character(field["replacement"]), prefixed](std::vector<std::string>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], mark, i == 0 && prefixed ? "" : " ");
  };
}

inline std::vector<decoder> read_decoders(const json_field& part) {
  static const std::map<std::string, decoder (*)(const json_field&)> readers = {
      {"ByteLevel", read_byte_level_decoder},
      {"ByteFallback", read_byte_fallback_decoder},
      {"Fuse", read_fuse_decoder},
      {"Replace", read_replace_decoder},
      {"Strip", read_strip_decoder},
      {"Metaspace", read_metaspace_decoder}};
  std::vector<decoder> steps;
  each_step(part, "decoders", [&](const json_field& step) { steps.push_back(step["type"].look_up(readers)(step)); });
  return steps;
}

}  // namespace lab
