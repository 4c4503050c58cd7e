// What every benchmark program is: a list of benchmarks, each with the row of kernels it runs on.
// SPDX-License-Identifier: MIT
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "octet/octet.hpp"
#include "versus.hpp"

namespace harness {

// Each program says what it measures.
void register_benchmarks();

inline constexpr std::size_t best_row = octet::simd::row_count;

// Registers a benchmark under a name. With a row, it runs on those kernels, and the name ends in the row's.
template <class Body>
void add(const std::string& name, Body body, std::size_t row = best_row) {
  const std::string suffix = row == best_row ? "" : std::string("/row:") + octet::simd::row_name(row);
  const auto batch = std::make_shared<batch_sizes>();
  benchmark::RegisterBenchmark((name + suffix).c_str(), [body, row, batch](benchmark::State& state) {
    octet::simd::pick_row(row);
    body(run{state, *batch});
    octet::simd::pick_row(best_row);
  })->UseManualTime();
}

// Calls visit(row) for the rows that run here.
template <class Visit>
void for_each_row(Visit visit) {
  for (std::size_t row = 0; row < octet::simd::row_count; ++row)
    if (octet::simd::row_runs_here(row)) visit(row);
}

}  // namespace harness
