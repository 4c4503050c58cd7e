// Numbers and words as text.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

namespace lab {

// printf into a string.
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
inline std::string
text(const char* format, ...) {
  char buffer[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

// "1 value", "2 values".
inline std::string counted(const std::string& number, const std::string& noun) {
  return number + " " + noun + (number == "1" ? "" : "s");
}
inline std::string counted(unsigned long long number, const std::string& noun) {
  return counted(std::to_string(number), noun);
}

// The text with every `from`, which is not empty, become `to`.
inline std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t next; (next = text.find(from, done)) != text.npos; done = next + from.size())
    out.append(text, done, next - done).append(to);
  return out.append(text, done);
}

}  // namespace lab
