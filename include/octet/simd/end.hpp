// Takes back what the begin.hpp of a row put in force: its macros, and what it did to GCC's warnings.
// SPDX-License-Identifier: MIT

// The end of every part of every row, hence no #pragma once.
#undef OCTET_ROW
#undef OCTET_ROW_LOOP
#undef OCTET_ROW_INLINE
#undef OCTET_TARGET
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
