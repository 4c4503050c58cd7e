// A benchmark's arrays: its input, filled with values, then its output and what else it writes, one after the other.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "memory.hpp"
#include "names.hpp"
#include "values.hpp"

namespace harness {

template <class In, class Out>
struct arrays {
  In* in;
  Out* out;
  float* aside;
};

// n values of In, as many of Out, and so many floats aside, each from the beginning of a line (of a page where they are
// many). Out and aside are not set. There is one region for all, so arrays of an earlier call end. Asked for the same
// input again, it finds it filled.
template <class In, class Out>
arrays<In, Out> lay_out(std::size_t n, const distribution& values = normal, std::size_t floats_aside = 0) {
  static region memory;
  static std::string filled;
  const std::size_t unit = n * (sizeof(In) + sizeof(Out)) < (std::size_t{1} << 24) ? 64 : 4096;
  const auto whole = [unit](std::size_t bytes) { return (bytes + unit - 1) / unit * unit; };
  const std::size_t in = whole(n * sizeof(In)), out = whole(n * sizeof(Out)), all = in + out + 4 * floats_aside;
  unsigned char* const before = memory.at_least(0);
  unsigned char* const begin = memory.at_least(all);
  arrays<In, Out> found{reinterpret_cast<In*>(begin), reinterpret_cast<Out*>(begin + in),
                        reinterpret_cast<float*>(begin + in + out)};
  const std::string wanted = path({name_of<In>, values.name, std::to_string(n)});
  if (begin != before || wanted != filled) fill(found.in, n, values);
  filled = wanted;
  return found;
}

// How many elements of so many bytes (read and written) make a level's bytes; a multiple of 128, so that every loop
// works on whole lines.
inline std::size_t elements_in(level where, std::size_t bytes_each) { return where.bytes / bytes_each / 128 * 128; }

}  // namespace harness
