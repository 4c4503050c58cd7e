// Tokens that a text may hold written out, such as "<|endoftext|>": they are cut out before anything else is done.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unicode.hpp"

namespace lab {

struct added_token {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  // not where a word character stands beside it
  bool lstrip = false;       // takes the white space on its left with it
  bool rstrip = false;       // and on its right
  bool normalized = true;    // is looked for in the normalized text, as its own normalized form
};

// Finds added tokens, by the text that stands for each: the leftmost, of several the longest.
class added_token_finder {
 public:
  // The text is not empty. False where it already stands for another token.
  bool add(const std::string& written, const added_token& token) {
    std::vector<entry>& same_byte = entries_[static_cast<unsigned char>(written.front())];
    const auto longer = [&](const entry& e) { return e.written.size() > written.size(); };
    auto place = std::find_if_not(same_byte.begin(), same_byte.end(), longer);
    for (auto other = place; other != same_byte.end() && other->written.size() == written.size(); ++other)
      if (other->written == written) return false;
    same_byte.insert(place, {written, token});
    return true;
  }

  // Calls between(text, begin) for each stretch without tokens, which begins at `begin` of the text, and on_token(id)
  // for each token, from left to right.
  template <class Between, class On_token>
  void split(std::string_view text, Between between, On_token on_token) const {
    std::size_t done = 0;
    for (std::size_t i = 0; i < text.size();) {
      const entry* const found = at(text.substr(i));
      if (found == nullptr) {
        ++i;
        continue;
      }
      std::size_t begin = i, end = i + found->written.size();
      i = end;
      const added_token& token = found->token;
      if (token.single_word && (ends_in_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) continue;
      if (token.lstrip) begin -= space_at_end(text.substr(0, begin));
      if (token.rstrip) end += space_at_begin(text.substr(end));
      if (done < begin) between(text.substr(done, begin - done), done);
      on_token(token.id);
      done = end;
    }
    if (done < text.size()) between(text.substr(done), done);
  }

 private:
  struct entry {
    std::string written;
    added_token token;
  };

  const entry* at(std::string_view text) const {
    for (const entry& e : entries_[static_cast<unsigned char>(text.front())])
      if (text.substr(0, e.written.size()) == e.written) return &e;
    return nullptr;
  }
  static std::string_view last_character(std::string_view text) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    return text.substr(begin);
  }
  static bool begins_with_word(std::string_view text) {
    return !text.empty() && word_character(first_code_point(text).value);
  }
  static bool ends_in_word(std::string_view text) { return !text.empty() && begins_with_word(last_character(text)); }
  static std::size_t space_at_begin(std::string_view text) {
    std::size_t bytes = 0;
    while (bytes < text.size() && white_space(first_code_point(text.substr(bytes)).value))
      bytes += character_bytes(text, bytes);
    return bytes;
  }
  static std::size_t space_at_end(std::string_view text) {
    std::size_t bytes = 0;
    while (bytes < text.size()) {
      const std::string_view last = last_character(text.substr(0, text.size() - bytes));
      if (!white_space(first_code_point(last).value)) break;
      bytes += last.size();
    }
    return bytes;
  }

  std::array<std::vector<entry>, 256> entries_;  // by their first byte, the longest first
};

}  // namespace lab
