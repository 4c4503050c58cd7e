// The machine's own speed: loops that read and write as many bytes as the work measured, and compute nothing.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

// This header and limit_loops.hpp are compiled with the flags of one kind of machine, so that they use nothing that
// another translation unit shares: no standard containers, and no function with external linkage but the three tables.

namespace harness {

// Lines of 64 bytes that a step reads and writes: {4, 1} is float to fp8, {1, 2} is fp8 to bfloat16, {2, 0} only reads.
struct mix {
  int read, written;
};

// in: steps * mix.read lines. out: steps * mix.written lines. Both begin at a line. A loop that works on several pages
// at once needs arrays of many.
struct limit_loop {
  const char* name;
  void (*run)(const unsigned char* in, unsigned char* out, std::size_t steps);
  std::size_t least_steps;
};

struct limit_loops {
  const limit_loop* loops;
  std::size_t count;  // 0: no loop has this mix
};

// The loops that move such a mix, by width of vectors; each needs a machine that has them.
limit_loops avx512_loops(mix);
limit_loops avx2_loops(mix);
limit_loops plain_loops(mix);

}  // namespace harness
