// UTF-8, Unicode's properties and NFC, as far as tokenizers need them; the tables are utf8proc's.
// SPDX-License-Identifier: MIT
#pragma once

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "lab/failure.hpp"

namespace lab {

struct code_point {
  std::int32_t value;
  std::size_t bytes;  // 0: what stands there is no UTF-8
};

// The code point at the beginning of a text that is not empty.
inline code_point first_code_point(std::string_view text) {
  utf8proc_int32_t value = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &value);
  return {value, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

// Of UTF-8, the bytes of the character that begins at `position`.
inline std::size_t character_bytes(std::string_view text, std::size_t position) {
  const auto lead = static_cast<unsigned char>(text[position]);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// Throws a failure that names the text unless it is UTF-8.
inline void expect_utf8(std::string_view text, const std::string& name) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = first_code_point(text.substr(i)).bytes;
    if (bytes == 0) throw failure(name + ": is no UTF-8 from byte " + std::to_string(i + 1) + " on");
    i += bytes;
  }
}

// Composes what canonical equivalence lets compose (Unicode Standard Annex 15). The text is UTF-8. Hugging Face's program
// knows the marks of Unicode 9 only: where younger ones are out of order, or compose, it leaves them.
inline std::string nfc(const std::string& text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return text;
  utf8proc_uint8_t* composed = nullptr;
  const auto bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(composed, std::free);
  if (bytes < 0) throw failure(std::string("text: could not be normalized: ") + utf8proc_errmsg(bytes));
  return std::string(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(bytes));
}

// The property White_Space.
struct code_point_range {
  std::int32_t first, last;
};
inline constexpr code_point_range white_space_ranges[] = {
    {0x09, 0x0D},     {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
inline bool white_space(std::int32_t c) {
  return std::any_of(std::begin(white_space_ranges), std::end(white_space_ranges),
                     [c](code_point_range range) { return range.first <= c && c <= range.last; });
}

// The categories Nd, Nl and No.
inline bool numeric(std::int32_t c) {
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

// \w of Unicode Technical Standard 18, annex C: alphabetic, marks, decimal digits, connectors and joiners.
inline bool word_character(std::int32_t c) {
  constexpr code_point_range others[] = {
      {0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  const utf8proc_category_t category = utf8proc_category(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC ||
         std::any_of(std::begin(others), std::end(others),
                     [c](code_point_range range) { return range.first <= c && c <= range.last; });
}

}  // namespace lab
