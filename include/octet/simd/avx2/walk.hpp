// How the kernels of the AVX2 row go along their values: quickly, carefully, or past the cache.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include <cstring>

#include "memory.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx2 {

// A kernel writes 32 results from 32 values at a time:
//   in, out              where they are
//   quick(i)             values i to i + 31; true if none of them needed more care than this takes
//   careful<Streams>(i)  the same, whatever the values are; with Streams past the cache
// After values that need care (NaN, or what overflows) a walk stays careful for a while: a branch that goes one way for
// long costs little, one that NaN here and there decides costs more than the care. The loops are functions of their
// own, so that each is compiled once and none has another's code in the way of its registers.
// Blocks from i on; returns the first that needs care, or where less than a block is left.
template <class Kernel>
OCTET_ROW_LOOP std::size_t quick_run(const Kernel& k, std::size_t i, std::size_t n) {
  for (; n - i >= 32; i += 32)
    if (!k.quick(i)) break;
  return i;
}
template <class Kernel>
OCTET_ROW_LOOP void careful_run(const Kernel& k, std::size_t i, std::size_t n) {
  for (; n - i >= 32; i += 32) k.template careful<false>(i);
}

// A run that is no multiple of 32 ends with a block that overlaps the one before: input and output are apart, so the
// same bytes are written twice. A run shorter than a block goes through a buffer.
template <class Kernel>
OCTET_ROW_LOOP void last_run(const Kernel& k, std::size_t n) {
  if (n >= 32) return k.template careful<false>(n - 32);
  alignas(32) unsigned char values[32 * sizeof(*k.in)] = {}, results[32 * sizeof(*k.out)];
  std::memcpy(values, k.in, n * sizeof(*k.in));
  Kernel block = k;
  block.in = reinterpret_cast<decltype(k.in)>(values);
  block.out = reinterpret_cast<decltype(k.out)>(results);
  block.template careful<false>(0);
  std::memcpy(k.out, results, n * sizeof(*k.out));
}

// Elements i to n - 1; i is 0 or n at least 32.
template <class Kernel>
OCTET_ROW_INLINE void walk_from(const Kernel& k, std::size_t i, std::size_t n) {
  while (n - i >= 32) {
    i = quick_run(k, i, n);
    if (n - i < 32) break;
    const std::size_t end = n - i < careful_for ? n - (n - i) % 32 : i + careful_for;
    careful_run(k, i, end);
    i = end;
  }
  if (i < n) last_run(k, n);
}

// Work that streams (pages): the stores go past the cache. Memory takes longer than the care. The results must lie on a
// 64-byte boundary. Returns where less than a page is left.
template <class Kernel>
OCTET_ROW_LOOP std::size_t page_run(const Kernel& k, std::size_t i, std::size_t n) {
  using P = pages<Kernel>;
  for (std::size_t round = P::round(n - i); round != 0; i += round, round = P::round(n - i))
    for (std::size_t at = i; at < i + P::page; at += 64)
      for (std::size_t stream = at; stream < at + round; stream += P::page) {
        prefetch_lines<64 * P::in_bytes>(somewhere(k.in, (stream + round) * P::in_bytes));
        k.template careful<true>(stream);
        k.template careful<true>(stream + 32);
      }
  _mm_sfence();
  return i;
}

template <class Kernel>
OCTET_ROW_INLINE void walk(const Kernel& k, std::size_t n, bool streams) {
  std::size_t i = 0;
  const std::size_t before = (0 - reinterpret_cast<std::uintptr_t>(k.out)) % 64;  // bytes to the boundary
  if (streams && before % sizeof(*k.out) == 0 && n >= 64 + pages<Kernel>::page) {
    i = before / sizeof(*k.out);
    if (i != 0) careful_run(k, 0, 64);
    i = page_run(k, i, n);
  }
  walk_from(k, i, n);
}

}  // namespace avx2
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
