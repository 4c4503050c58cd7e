// decode: codes to values without a scale; every target, every format, every row.
// SPDX-License-Identifier: MIT
#include "harness/arrays.hpp"
#include "harness/program.hpp"

namespace {

using harness::level;

template <class F, class T>
void decode(const harness::run& run, level where) {
  const std::size_t n = harness::elements_in(where, 1 + sizeof(T));
  const auto a = harness::lay_out<F, T>(n);
  harness::against_limit(run, n, {{a.in, a.out, n, n * sizeof(T)}}, [&] { octet::decode(a.in, a.out, n); });
}

template <class F, class T>
void add(level where, std::size_t row = harness::best_row) {
  const std::string name = harness::path({"decode", harness::name_of<F>, harness::name_of<T>, where.name});
  harness::add(
      name, [where](const harness::run& run) { decode<F, T>(run, where); }, row);
}

template <class F>
void add_targets(level where) {
  add<F, float>(where);
  add<F, octet::float16>(where);
  add<F, octet::bfloat16>(where);
}

template <class... Formats>
void add_formats() {
  (add<Formats, float>(harness::l2()), ...);
}

}  // namespace

void harness::register_benchmarks() {
  for (const level where : {l1(), l2(), mem()}) {
    add_targets<octet::e4m3>(where);
    add_targets<octet::e5m2>(where);
    for_each_row([where](std::size_t row) { ::add<octet::e4m3, float>(where, row); });
  }
  add_formats<octet::e4m3_ieee, octet::e4m3fnuz, octet::e5m2fnuz, octet::e4m3b11fnuz, octet::e3m4, octet::p3109_p3,
              octet::p3109_p4, octet::e8m0, octet::e2m3, octet::e3m2, octet::e2m1>();
}
