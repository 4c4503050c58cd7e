// Rows of the movers.
// SPDX-License-Identifier: MIT
#include "row.hpp"
void cuda_bench::add_movers(std::vector<row>&) {}
