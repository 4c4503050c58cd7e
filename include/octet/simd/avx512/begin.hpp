// The target of the AVX-512 row and the kinds of functions it holds, as macros: from here to end.hpp.
// SPDX-License-Identifier: MIT

// The last header that a part of the row includes, so that no other header is read with these macros; end.hpp takes
// them back at the part's end. Both are read once for every part, hence no #pragma once.
#define OCTET_TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")))
#define OCTET_ROW_INLINE OCTET_TARGET __attribute__((always_inline)) inline
#define OCTET_ROW [[maybe_unused]] OCTET_TARGET static
#define OCTET_ROW_LOOP [[maybe_unused]] OCTET_TARGET static __attribute__((noinline))

// GCC's intrinsics begin some results with an undefined register, and it warns of that (GCC bug 105593, gone in GCC
// 13).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
// Unoptimised, many of them are macros, which pass masks of the wrong sign.
#ifndef __OPTIMIZE__
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#endif
