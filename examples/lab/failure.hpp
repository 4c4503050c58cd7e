// What goes wrong in a program, and is told in one line.
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>

namespace lab {

// What went wrong, as "thing: what is wrong with it"; exit code 1 unless the program's help says otherwise.
struct failure : std::runtime_error {
  explicit failure(const std::string& what, int code = 1) : std::runtime_error(what), exit_code(code) {}
  int exit_code;
};

// Arguments that are wrong together, though each may be right alone; exit code 2.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lab
