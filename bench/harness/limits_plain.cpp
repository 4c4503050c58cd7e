// The loops that are the limit, compiled for every machine of this kind, with the compiler's default vectors.
// SPDX-License-Identifier: MIT
#include "limit_loops.hpp"

harness::limit_loops harness::plain_loops(mix m) { return loops_for(m); }
