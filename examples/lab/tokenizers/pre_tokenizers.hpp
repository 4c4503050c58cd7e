// The pre-tokenizers of a tokenizer.json: how the text is cut into pieces, across whose borders no tokens merge.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "byte_level.hpp"
#include "lab/json_file.hpp"
#include "lab/text.hpp"
#include "regular_expression.hpp"
#include "steps.hpp"
#include "unicode.hpp"

namespace lab {

// A piece of the text, never empty; `first` if it begins where the whole text does.
struct piece {
  std::string text;
  bool first;
};

// One after the other, each changes the pieces and cuts them smaller.
using pre_tokenizer = std::function<void(std::vector<piece>&)>;

// A stretch of a piece, and whether it is one of those that were looked for.
struct stretch {
  std::size_t begin, end;
  bool match;
};

// The stretches of a text, from left to right: the matches of a pattern and what lies between them.
inline std::vector<stretch> stretches(const regular_expression& pattern, std::string_view text) {
  std::vector<stretch> all;
  std::size_t done = 0;
  pattern.each_match(text, [&](std::size_t begin, std::size_t end) {
    if (done < begin) all.push_back({done, begin, false});
    all.push_back({begin, end, true});
    done = end;
  });
  if (done < text.size()) all.push_back({done, text.size(), false});
  return all;
}

// What becomes of the matches: stretches that follow one another go together or apart, or are left out.
using behavior = void (*)(std::vector<stretch>&);

// Joins each stretch to the one before it where joined(before, it) says so; both are as they were found.
template <class Joined>
void join(std::vector<stretch>& all, Joined joined) {
  std::vector<stretch> out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i > 0 && joined(all[i - 1], all[i]))
      out.back().end = all[i].end;
    else
      out.push_back(all[i]);
  all = std::move(out);
}

inline const std::map<std::string, behavior>& behaviors() {
  static const std::map<std::string, behavior> table = {
      {"Isolated", [](std::vector<stretch>&) {}},
      {"Removed",
       [](std::vector<stretch>& all) {
         all.erase(std::remove_if(all.begin(), all.end(), [](const stretch& s) { return s.match; }), all.end());
       }},
      {"Contiguous",
       [](std::vector<stretch>& all) {
         join(all, [](const stretch& before, const stretch& s) { return before.match == s.match; });
       }},
      {"MergedWithPrevious",
       [](std::vector<stretch>& all) {
         join(all, [](const stretch& before, const stretch& s) { return s.match && !before.match; });
       }},
      {"MergedWithNext",
       [](std::vector<stretch>& all) {
         join(all, [](const stretch& before, const stretch& s) { return before.match && !s.match; });
       }},
  };
  return table;
}

// Cuts each piece into the stretches that cut(text) gives.
template <class Cut>
void cut_pieces(std::vector<piece>& pieces, Cut cut) {
  std::vector<piece> out;
  for (const piece& whole : pieces)
    for (const stretch& s : cut(whole.text))
      if (s.begin < s.end) out.push_back({whole.text.substr(s.begin, s.end - s.begin), whole.first && s.begin == 0});
  pieces = std::move(out);
}

inline pre_tokenizer read_split(const json_field& field) {
  return [pattern = read_pattern(field["pattern"]), apply = field["behavior"].look_up(behaviors()),
          invert = field["invert"].flag(false)](std::vector<piece>& pieces) {
    cut_pieces(pieces, [&](const std::string& text) {
      std::vector<stretch> all = stretches(pattern, text);
      if (invert)
        for (stretch& s : all) s.match = !s.match;
      apply(all);
      return all;
    });
  };
}

// A space before each piece that begins with none, GPT-2's way to cut, then each byte as a letter of the byte alphabet.
inline pre_tokenizer read_byte_level(const json_field& field) {
  std::shared_ptr<const regular_expression> words;
  if (field["use_regex"].flag(true))
    words = std::make_shared<regular_expression>(
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
        regular_expression::syntax::oniguruma, field.name());
  return [words, prefix = field["add_prefix_space"].flag(true)](std::vector<piece>& pieces) {
    if (prefix)
      for (piece& p : pieces)
        if (p.text.front() != ' ') p.text.insert(0, " ");
    if (words) cut_pieces(pieces, [&](const std::string& text) { return stretches(*words, text); });
    for (piece& p : pieces) p.text = byte_level(p.text);
  };
}

// Each digit by itself, or each run of them.
inline pre_tokenizer read_digits(const json_field& field) {
  return [apply = behaviors().at(field["individual_digits"].flag(false) ? "Isolated" : "Contiguous")](
             std::vector<piece>& pieces) {
    cut_pieces(pieces, [&](const std::string& text) {
      std::vector<stretch> all;
      for (std::size_t i = 0; i < text.size();) {
        const code_point c = first_code_point(std::string_view(text).substr(i));
        const bool digit = numeric(c.value);
        if (digit || all.empty() || all.back().match)
          all.push_back({i, i + c.bytes, digit});
        else
          all.back().end += c.bytes;
        i += c.bytes;
      }
      apply(all);
      return all;
    });
  };
}

// SentencePiece's way to write spaces: each becomes a mark, one is put before the text or before every piece, and a piece
// begins at each mark.
inline pre_tokenizer read_metaspace(const json_field& field) {
  enum class where { always, first, never };
  static const std::map<std::string, where> schemes = {
      {"always", where::always}, {"first", where::first}, {"never", where::never}};
  const std::string& mark = one_character(field["replacement"]);
  const json_field scheme = field["prepend_scheme"], older = field["add_prefix_space"];
  where prefix = scheme.missing() ? where::always : scheme.look_up(schemes);
  if (!older.flag(true)) {
    if (!scheme.missing() && prefix != where::never) throw older.wrong("is false, which prepend_scheme contradicts");
    prefix = where::never;
  }
  std::shared_ptr<const regular_expression> marks;
  if (field["split"].flag(true))
    marks = std::make_shared<regular_expression>(mark, regular_expression::syntax::literal, field.name());
  return [mark, prefix, marks](std::vector<piece>& pieces) {
    for (piece& p : pieces) {
      p.text = replaced(p.text, " ", mark);
      const bool marked = p.text.compare(0, mark.size(), mark) == 0;
      if (!marked && (prefix == where::always || (prefix == where::first && p.first))) p.text.insert(0, mark);
    }
    if (!marks) return;
    cut_pieces(pieces, [&](const std::string& text) {
      std::vector<stretch> all = stretches(*marks, text);
      behaviors().at("MergedWithNext")(all);
      return all;
    });
  };
}

inline std::vector<pre_tokenizer> read_pre_tokenizers(const json_field& part) {
  static const std::map<std::string, pre_tokenizer (*)(const json_field&)> readers = {
      {"Split", read_split}, {"ByteLevel", read_byte_level}, {"Digits", read_digits}, {"Metaspace", read_metaspace}};
  std::vector<pre_tokenizer> steps;
  each_step(part, "pretokenizers",
            [&](const json_field& step) { steps.push_back(step["type"].look_up(readers)(step)); });
  return steps;
}

}  // namespace lab
