// How the kernels of the NEON row go along their values.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_AARCH64
#include <cstring>

#include "memory.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace neon {

// A kernel writes 16 results from 16 values at a time. A run that is no multiple of 16 ends with a block that overlaps
// the one before: input and output are apart, so the same bytes are written twice. A run shorter than a block goes
// through a buffer. n is not 0.
template <class Kernel>
OCTET_ROW_INLINE void walk(const Kernel& k, std::size_t n) {
  if (n < 16) {
    alignas(16) unsigned char values[16 * sizeof(*k.in)] = {}, results[16 * sizeof(*k.out)];
    std::memcpy(values, k.in, n * sizeof(*k.in));
    Kernel block = k;
    block.in = reinterpret_cast<decltype(k.in)>(values);
    block.out = reinterpret_cast<decltype(k.out)>(results);
    block.block(0);
    std::memcpy(k.out, results, n * sizeof(*k.out));
    return;
  }
  for (std::size_t i = 0; n - i >= 16; i += 16) k.block(i);
  if (n % 16 != 0) k.block(n - 16);
}

}  // namespace neon
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
