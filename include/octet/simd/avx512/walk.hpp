// How the kernels of the AVX-512 row go along their values: quickly, carefully, or past the cache.
// SPDX-License-Identifier: MIT
#pragma once

#include "../../config.hpp"
#if OCTET_X86_64
#include "memory.hpp"

#include "begin.hpp"

namespace octet {
inline namespace v0 {
namespace simd {
namespace avx512 {

// A kernel writes 64 results from 64 values at a time:
//   in, out                    where they are
//   quick(i)                   values i to i + 63; true if none of them needed more care than this takes
//   careful<Streams>(i, span)  those within the span, whatever the values are; with Streams all, and past the cache
// After values that need care (NaN for the most part) a walk stays careful for a while: a branch that goes one way for
// long costs little, one that NaN here and there decides costs more than the care. The loops are functions of their
// own, so that each is compiled once and none has another's code in the way of its registers.
// Blocks from i on; returns the first that needs care, or where less than a block is left.
template <class Kernel>
OCTET_ROW_LOOP std::size_t quick_run(const Kernel& k, std::size_t i, std::size_t n) {
  for (; n - i >= 64; i += 64)
    if (!k.quick(i)) break;
  return i;
}
template <class Kernel>
OCTET_ROW_LOOP void careful_run(const Kernel& k, std::size_t i, std::size_t n) {
  for (; n - i >= 64; i += 64) k.template careful<false>(i, span64(64));
  if (i < n) k.template careful<false>(i, span64(n - i));
}

// Elements i to n - 1.
template <class Kernel>
OCTET_ROW_INLINE void walk_from(const Kernel& k, std::size_t i, std::size_t n) {
  while (i < n) {
    if (n - i >= 64) i = quick_run(k, i, n);
    const std::size_t end = n - i < careful_for ? n : i + careful_for;
    if (i < end) careful_run(k, i, end);
    i = end;
  }
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
        k.template careful<true>(stream, span64(64));
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
    careful_run(k, 0, i);
    i = page_run(k, i, n);
  }
  walk_from(k, i, n);
}

}  // namespace avx512
}  // namespace simd
}  // namespace v0
}  // namespace octet

#include "../end.hpp"
#endif
