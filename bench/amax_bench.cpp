// amax: the largest magnitude of an array; every source, every row.
// SPDX-License-Identifier: MIT
#include "harness/arrays.hpp"
#include "harness/program.hpp"

namespace {

using harness::level;

template <class T>
void amax(const harness::run& run, level where) {
  const std::size_t n = harness::elements_in(where, sizeof(T));
  const T* const in = harness::lay_out<T, T>(n).in;
  harness::against_limit(run, n, {{in, nullptr, n * sizeof(T), 0}},
                         [&] { benchmark::DoNotOptimize(octet::amax(in, n)); });
}

template <class T>
void add(level where, std::size_t row = harness::best_row) {
  harness::add(
      harness::path({"amax", harness::name_of<T>, where.name}),
      [where](const harness::run& run) { amax<T>(run, where); }, row);
}

}  // namespace

void harness::register_benchmarks() {
  for (const level where : {l1(), l2(), mem()}) {
    ::add<float>(where);
    ::add<octet::float16>(where);
    ::add<octet::bfloat16>(where);
    for_each_row([where](std::size_t row) { ::add<float>(where, row); });
  }
}
