// What the options of a program accept: checks for CLI11, which return what is wrong with an argument, or nothing.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace lab {

// Decimal digits only: no sign, which would wrap round, and no leading zero, which would mean octal.
inline std::string whole_number(const std::string& value) {
  const bool digits = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || (value[0] == '0' && value.size() > 1)) return "'" + value + "' is no whole number";
  const std::string most = "18446744073709551615";
  const bool fits = value.size() < most.size() || (value.size() == most.size() && value <= most);
  return fits ? "" : "'" + value + "' is more than " + most;
}

inline std::string at_least_one(const std::string& value) {
  return value == "0" ? "must be 1 or more" : whole_number(value);
}

inline std::string not_empty(const std::string& value) { return value.empty() ? "must not be empty" : ""; }

}  // namespace lab
