// The regular expressions of tokenizers, which are written for Oniguruma, matched by PCRE2.
// SPDX-License-Identifier: MIT
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "lab/failure.hpp"
#include "lab/text.hpp"
#include "unicode.hpp"

namespace lab {

// An Oniguruma pattern (of Ruby's syntax, the one that tokenizers are written in) as PCRE2 reads it. Most is the same in
// both; this rewrites \s and \S, since PCRE2's have U+180E, which is no White_Space. What the two read differently throws
// a failure: NAME and what is not read here.
inline std::string pcre2_pattern(std::string_view pattern, const std::string& name) {
  const auto expect_same = [&](bool same, std::string_view construct) {
    if (!same) throw failure(name + " holds '" + std::string(construct) + "', which is not read here");
  };
  const auto begins = [&](std::size_t i, std::string_view word) {
    return i <= pattern.size() && pattern.substr(i, word.size()) == word;
  };
  const auto is_mark = [](char c) { return c > ' ' && c < 0x7F && std::isalnum(static_cast<unsigned char>(c)) == 0; };
  std::string spaces, others;
  std::int32_t next = 0;
  for (const code_point_range range : white_space_ranges) {
    spaces += text("\\x{%x}-\\x{%x}", static_cast<unsigned>(range.first), static_cast<unsigned>(range.last));
    others += text("\\x{%x}-\\x{%x}", static_cast<unsigned>(next), static_cast<unsigned>(range.first - 1));
    next = range.last + 1;
  }
  others += text("\\x{%x}-\\x{10ffff}", static_cast<unsigned>(next));

  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      // An escape, and the braces of a property or of a code point.
      const bool braces = begins(i + 1, "p{") || begins(i + 1, "P{") || begins(i + 1, "x{");
      const std::size_t end = braces ? pattern.find('}', i) : i + 1;
      const std::string_view escape = pattern.substr(i, end == pattern.npos ? end : end + 1 - i);
      // Of properties the general categories, of one or two letters: PCRE2's scripts are wider than Oniguruma's.
      const bool known = escape.size() == 2 ? std::strchr("sSdDrntf", escape[1]) != nullptr || is_mark(escape[1])
                                            : braces && (escape[1] == 'x' || escape.size() <= 6);
      expect_same(known, escape);
      const bool space = escape[1] == 's';
      if (space || escape[1] == 'S') {
        const std::string& members = space ? spaces : others;
        out += in_class ? members : "[" + members + "]";
      } else {
        out += escape;
      }
      i += escape.size() - 1;
      continue;
    }
    if (in_class) {
      expect_same(c != '[' && !begins(i, "&&"), pattern.substr(i, c == '[' ? 1 : 2));
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
      if (begins(i, "[^")) out += pattern[i++];
      expect_same(!begins(i + 1, "]"), "[]");
    } else if (begins(i, "(?") || begins(i, "(*")) {
      constexpr std::string_view groups[] = {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
      expect_same(std::any_of(std::begin(groups), std::end(groups), [&](auto group) { return begins(i, group); }),
                  pattern.substr(i, 3));
    } else if (c == '}') {
      expect_same(!begins(i, "}+"), "}+");
    } else if (c == '{') {
      expect_same(!begins(i, "{,"), "{,");
    }
    out += pattern[i];
  }
  return out;
}

class regular_expression {
 public:
  enum class syntax { oniguruma, literal };

  // The pattern is UTF-8. Throws a failure that begins with NAME if it is none.
  regular_expression(const std::string& pattern, syntax kind, const std::string& name) : name_(name) {
    const std::string translated = kind == syntax::literal ? pattern : pcre2_pattern(pattern, name);
    const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
        pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
    if (!context) throw std::bad_alloc();
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);  // what . leaves out, and where $ matches
    const std::uint32_t options = kind == syntax::literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE;
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options | PCRE2_UTF,
                              &error, &at, context.get()),
                pcre2_code_free);
    if (!code_) throw failure(name_ + " is no regular expression: " + message(error));
    // Without a compiler for this machine the pattern is interpreted, with the same matches.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  // Calls f(begin, end) for each match in a text of UTF-8, from left to right. An empty match where the match before
  // ended is none.
  template <class F>
  void each_match(std::string_view subject, F f) const {
    const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr), pcre2_match_data_free);
    const std::unique_ptr<pcre2_match_context, void (*)(pcre2_match_context*)> context(
        pcre2_match_context_create(nullptr), pcre2_match_context_free);
    if (!data || !context) throw std::bad_alloc();
    // A run of whitespace is walked back a character at a time, each of which counts: megabytes of it are no fault.
    pcre2_set_match_limit(context.get(), UINT32_MAX);
    const auto match = [&](std::size_t start, std::uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), start,
                         options | PCRE2_NO_UTF_CHECK, data.get(), context.get());
    };
    bool matched = false;
    for (std::size_t start = 0, last = 0; start <= subject.size();) {
      int result = match(start, 0);
      // The compiled pattern has 32 KB to remember where to go back to, the interpreted one as much as there is.
      if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(start, PCRE2_NO_JIT);
      if (result == PCRE2_ERROR_NOMATCH) return;
      if (result < 0) throw failure(name_ + " could not be matched: " + message(result));
      const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data.get());
      if (ends[0] == ends[1] && matched && ends[1] == last) {
        start += start < subject.size() ? character_bytes(subject, start) : 1;
        continue;
      }
      matched = true;
      start = last = ends[1];
      f(ends[0], ends[1]);
    }
  }

 private:
  static std::string message(int error) {
    PCRE2_UCHAR buffer[256];
    pcre2_get_error_message(error, buffer, sizeof buffer);
    return reinterpret_cast<const char*>(buffer);
  }

  std::string name_;
  std::shared_ptr<pcre2_code> code_;  // shared, so that what holds it can be copied into a std::function
};

}  // namespace lab
