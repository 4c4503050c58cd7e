// encode: values to codes without a scale; every source, both overflow modes, every format, every row, awkward data.
// SPDX-License-Identifier: MIT
#include "harness/arrays.hpp"
#include "harness/program.hpp"

namespace {

using harness::distribution;
using harness::level;
using octet::overflow;

template <class T, class F>
void encode(const harness::run& run, level where, overflow o, const distribution& values) {
  const std::size_t n = harness::elements_in(where, sizeof(T) + 1);
  const auto a = harness::lay_out<T, F>(n, values);
  harness::against_limit(run, n, {{a.in, a.out, n * sizeof(T), n}}, [&] { octet::encode(a.in, a.out, n, o); });
}

template <class T, class F>
void add(level where, overflow o = overflow::saturate, const distribution& values = harness::normal,
         std::size_t row = harness::best_row) {
  const std::string mode = o == overflow::saturate ? "" : "nonfinite";
  const std::string data = values.name == harness::normal.name ? "" : "data:" + std::string(values.name);
  const std::string name = harness::path({"encode", harness::name_of<T>, harness::name_of<F>, mode, data, where.name});
  harness::add(
      name, [=](const harness::run& run) { encode<T, F>(run, where, o, values); }, row);
}

template <class F>
void add_sources(level where) {
  add<float, F>(where);
  add<float, F>(where, overflow::nonfinite);
  add<octet::float16, F>(where);
  add<octet::bfloat16, F>(where);
}

// In L2, where kernels differ and memory does not hide it: no 8-bit format should take 4 times as long as E4M3.
template <class... Formats>
void add_formats() {
  (add<float, Formats>(harness::l2()), ...);
}

}  // namespace

void harness::register_benchmarks() {
  for (const level where : {l1(), l2(), mem()}) {
    add_sources<octet::e4m3>(where);
    add_sources<octet::e5m2>(where);
    for_each_row(
        [where](std::size_t row) { ::add<float, octet::e4m3>(where, overflow::saturate, harness::normal, row); });
  }
  add_formats<octet::e4m3_ieee, octet::e4m3fnuz, octet::e5m2fnuz, octet::e4m3b11fnuz, octet::e3m4, octet::p3109_p3,
              octet::p3109_p4, octet::e8m0, octet::e2m3, octet::e3m2, octet::e2m1>();
  for (const distribution& values : distributions)
    if (values.name != normal.name) ::add<float, octet::e4m3>(l2(), overflow::saturate, values);
}
