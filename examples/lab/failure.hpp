// What goes wrong in a program, and is told in one line.
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>

namespace lab {

// What went wrong, as "thing: what is wrong with it"; exit code 1.
struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Arguments that are wrong together, though each may be right alone; exit code 2.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lab
