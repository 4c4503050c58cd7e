// Catch2, version 2 or 3, whichever is installed.
// SPDX-License-Identifier: MIT
#pragma once

// Catch2's macros use __COUNTER__, which clang 22 calls an extension of a later standard.
#if defined(__clang__) && defined(__has_warning)
#if __has_warning("-Wc2y-extensions")
#pragma clang diagnostic ignored "-Wc2y-extensions"
#endif
#endif

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
