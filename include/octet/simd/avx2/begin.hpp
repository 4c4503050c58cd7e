// The target of the AVX2 row and the kinds of functions it holds, as macros: from here to end.hpp.
// SPDX-License-Identifier: MIT

// The last header that a part of the row includes, so that no other header is read with these macros; end.hpp takes
// them back at the part's end. Both are read once for every part, hence no #pragma once.
#define OCTET_TARGET __attribute__((target("avx2,fma,f16c")))
#define OCTET_ROW_INLINE OCTET_TARGET __attribute__((always_inline)) inline
#define OCTET_ROW [[maybe_unused]] OCTET_TARGET static
#define OCTET_ROW_LOOP [[maybe_unused]] OCTET_TARGET static __attribute__((noinline))

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#endif
