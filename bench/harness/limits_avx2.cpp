// The loops that are the limit, compiled for the vectors of AVX2 machines.
// SPDX-License-Identifier: MIT
#include "limit_loops.hpp"

harness::limit_loops harness::avx2_loops(mix m) { return loops_for(m); }
