// A text cut into the windows of tokens that a model is scored on.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lab/tokenizers/tokenizer.hpp"
#include "text_scores.hpp"

namespace lab {

inline constexpr const char* blank_line = "blank-line";

// The documents between the separators (`blank_line`: lines that hold nothing but blanks), without the blanks at their
// ends; empty ones are left out.
inline std::vector<std::string> documents_of(const std::string& text, const std::string& separator) {
  std::vector<std::string> documents;
  const auto add = [&](const std::string& piece) {
    const std::size_t first = piece.find_first_not_of(" \t\r\n"), last = piece.find_last_not_of(" \t\r\n");
    if (first != piece.npos) documents.push_back(piece.substr(first, last - first + 1));
  };
  if (separator != blank_line) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find(separator, begin)) != text.npos; begin = end + separator.size())
      add(text.substr(begin, end - begin));
    add(text.substr(begin));
    return documents;
  }
  std::string document;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") == line.npos) {
      add(document);
      document.clear();
    } else {
      document += line + '\n';
    }
    begin = end + 1;
  }
  add(document);
  return documents;
}

// `tokens` tokens of the text behind the first `skipped`, in windows of `context`; with a separator, documents in their
// order, each a window that is cut at `context` tokens, until so many predictions were skipped and taken. The tokenizer's
// first token stands before each window, and is not counted among `tokens`.
inline std::vector<window> cut_into_windows(const tokenizer& words, const std::string& text,
                                            const std::string& separator, std::size_t context, std::size_t skipped,
                                            std::size_t tokens) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max() - 1;
  tokens = std::min(tokens, all - skipped);
  std::vector<window> windows;
  const window begin = words.bos() ? window{*words.bos()} : window{};
  if (separator.empty()) {
    const std::vector<std::int32_t> ids = words.encode(text);
    const std::size_t end = std::min(ids.size(), skipped + tokens);
    for (std::size_t i = skipped; i < end; i += context) {
      window w = begin;
      w.insert(w.end(), ids.begin() + static_cast<std::ptrdiff_t>(i),
               ids.begin() + static_cast<std::ptrdiff_t>(std::min(end, i + context)));
      if (w.size() > 1) windows.push_back(std::move(w));
    }
    return windows;
  }
  std::size_t passed = 0;
  for (const std::string& document : documents_of(text, separator)) {
    if (passed >= skipped + tokens) break;
    window w = begin;
    const std::vector<std::int32_t> ids = words.encode(document);
    w.insert(w.end(), ids.begin(), ids.end());
    w.resize(std::min({w.size(), context, skipped + tokens - passed + 1}));
    if (w.size() < 2) continue;
    passed += w.size() - 1;
    if (passed > skipped) windows.push_back(std::move(w));
  }
  return windows;
}

}  // namespace lab
