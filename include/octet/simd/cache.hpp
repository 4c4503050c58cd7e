// How large the last-level cache is, and which work is too large for it.
// SPDX-License-Identifier: MIT
#pragma once

#include "../config.hpp"
#if OCTET_X86_64
#include <cpuid.h>
#endif

namespace octet {
inline namespace v0 {
namespace simd {

// Bytes of the largest cache, by cpuid (leaf 4 of Intel, 8000001D of AMD: ways x partitions x line x sets); 32 MiB
// where it does not say.
OCTET_LOCAL std::size_t largest_cache() {
  std::size_t largest = 0;
#if OCTET_X86_64
  constexpr unsigned leaves[] = {0x4u, 0x8000001Du};
  for (const unsigned leaf : leaves) {
    for (unsigned level = 0; level < 8; ++level) {
      unsigned a = 0, b = 0, c = 0, d = 0;
      if (!__get_cpuid_count(leaf, level, &a, &b, &c, &d) || (a & 0x1F) == 0) break;
      const std::size_t ways = (b >> 22) + 1, partitions = (b >> 12 & 0x3FF) + 1, line = (b & 0xFFF) + 1;
      const std::size_t bytes = ways * partitions * line * (std::size_t{c} + 1);
      largest = bytes > largest ? bytes : largest;
    }
  }
#endif
  return largest != 0 ? largest : std::size_t{32} << 20;
}

// Whether work that reads and writes so many bytes, each once, finds none of them in a cache afterwards. A quarter of
// the last level counts, since other threads and other programs have their share of it.
OCTET_LOCAL bool streams(std::size_t bytes) {
  static const std::size_t most = largest_cache() / 4;
  return bytes > most;
}

}  // namespace simd
}  // namespace v0
}  // namespace octet
