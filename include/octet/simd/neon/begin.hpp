// The kinds of functions the NEON row holds, as macros: from here to end.hpp.
// SPDX-License-Identifier: MIT

// The last header that a part of the row includes, so that no other header is read with these macros; end.hpp takes
// them back at the part's end. Both are read once for every part, hence no #pragma once.
// What the row needs is there at any flags, so they name no target.
#define OCTET_ROW_INLINE OCTET_HOST_INLINE
#define OCTET_ROW OCTET_LOCAL

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#endif
