// The alphabet in which byte-level tokenizers write bytes: a printable character for each.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lab {

// The printable characters of Latin-1 stand for their own bytes; the other bytes, in their order, are U+0100, U+0101, ...
// All of them are two bytes of UTF-8 at most.
inline const std::array<std::string, 256>& byte_alphabet() {
  static const std::array<std::string, 256> alphabet = [] {
    std::array<std::string, 256> letters;
    unsigned other = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
      const unsigned c = printable ? byte : other++;
      if (c < 0x80)
        letters[byte] = {static_cast<char>(c)};
      else
        letters[byte] = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    }
    return letters;
  }();
  return alphabet;
}

inline std::string byte_level(std::string_view bytes) {
  std::string letters;
  letters.reserve(bytes.size() * 2);
  for (const char byte : bytes) letters += byte_alphabet()[static_cast<unsigned char>(byte)];
  return letters;
}

// The bytes that a text of the alphabet stands for; nothing where it holds another character.
inline std::optional<std::string> bytes_of_byte_level(std::string_view letters) {
  static const std::unordered_map<std::string, char> bytes_of = [] {
    std::unordered_map<std::string, char> map;
    for (std::size_t byte = 0; byte < 256; ++byte) map[byte_alphabet()[byte]] = static_cast<char>(byte);
    return map;
  }();
  std::string bytes;
  for (std::size_t i = 0; i < letters.size();) {
    const std::size_t length = static_cast<unsigned char>(letters[i]) < 0x80 ? 1 : 2;
    const auto found = bytes_of.find(std::string(letters.substr(i, length)));
    if (found == bytes_of.end()) return std::nullopt;
    bytes += found->second;
    i += length;
  }
  return bytes;
}

}  // namespace lab
