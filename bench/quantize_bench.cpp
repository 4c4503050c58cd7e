// quantize, dequantize, measure: scaled values by every granularity, with descales found and given.
// SPDX-License-Identifier: MIT
#include "harness/arrays.hpp"
#include "harness/program.hpp"

namespace {

using harness::level;
using octet::descale;
using octet::matrix_view;
using F = octet::e4m3;

// -- The matrices -----------------------------------------------------------------------------------------------------

// About as many elements as make the level's bytes: rows of 4096 in memory, and what fits 128 x 128 in the caches.
struct shape {
  std::size_t rows, cols;
  std::size_t count() const { return rows * cols; }
};

shape shape_in(level where, std::size_t bytes_each) {
  const std::size_t n = harness::elements_in(where, bytes_each);
  if (n < 16384) return {n / 1024, 1024};
  if (n < (std::size_t{1} << 20)) return {128, n / 128 / 128 * 128};
  return {n / 4096 / 128 * 128, 4096};
}

// The whole of a benchmark's arrays as matrices, with memory for descales.
template <class T, class Granularity>
struct matrices {
  shape s;
  std::size_t descale_count;
  harness::arrays<T, F> memory;
  matrix_view<const T> in;
  matrix_view<F> codes;
  descale* descales;

  matrices(level where, const Granularity& g, const harness::distribution& values = harness::normal)
      : s(shape_in(where, sizeof(T) + 1)),
        descale_count(octet::descale_count(g, s.rows, s.cols)),
        memory(harness::lay_out<T, F>(s.count(), values, descale_count)),
        in(memory.in, s.rows, s.cols),
        codes(memory.out, s.rows, s.cols),
        descales(octet::as_descales(memory.aside)) {}

  harness::traffic read() const { return {memory.in, nullptr, s.count() * sizeof(T), 0}; }
  harness::traffic read_and_write() const { return {memory.in, memory.out, s.count() * sizeof(T), s.count()}; }
};

// -- What is measured -------------------------------------------------------------------------------------------------

// The limit reads the input once more than it must be written from where a tile does not fit in the caches.
template <class T, class Granularity>
void quantize(const harness::run& run, level where, const Granularity& g, const octet::scale_rule& rule, bool twice,
              const harness::distribution& values = harness::normal) {
  const matrices<T, Granularity> m(where, g, values);
  std::vector<harness::traffic> moved;
  if (twice) moved.push_back(m.read());
  moved.push_back(m.read_and_write());
  harness::against_limit(run, m.s.count(), moved, [&] { octet::quantize_into(m.in, g, rule, m.codes, m.descales); });
}

template <class T, class Granularity>
void quantize_given(const harness::run& run, level where, const Granularity& g) {
  const matrices<T, Granularity> m(where, g);
  std::fill_n(m.memory.aside, m.descale_count, 0.01f);
  harness::against_limit(run, m.s.count(), {m.read_and_write()},
                         [&] { octet::quantize_into(m.in, g, m.descales, m.codes); });
}

// Reads values and codes, and writes nothing.
template <class T, class Granularity>
void measure(const harness::run& run, level where, const Granularity& g) {
  const matrices<T, Granularity> m(where, g);
  octet::quantize_into(m.in, g, octet::scale_rule(), m.codes, m.descales);
  const auto q = octet::as_quantized(m.codes, m.descales, g);
  harness::against_limit(run, m.s.count(), {{m.memory.in, nullptr, m.s.count() * (sizeof(T) + 1), 0}},
                         [&] { benchmark::DoNotOptimize(octet::measure(m.in, q).compared); });
}

template <class T, class Granularity>
void dequantize(const harness::run& run, level where, const Granularity& g) {
  const shape s = shape_in(where, sizeof(T) + 1);
  const std::size_t count = octet::descale_count(g, s.rows, s.cols);
  const auto a = harness::lay_out<F, T>(s.count(), harness::normal, count);
  std::fill_n(a.aside, count, 0.01f);
  const auto q = octet::as_quantized(matrix_view<const F>(a.in, s.rows, s.cols), octet::as_descales(a.aside, count), g);
  harness::against_limit(run, s.count(), {{a.in, a.out, s.count(), s.count() * sizeof(T)}},
                         [&] { octet::dequantize_into(q, matrix_view<T>(a.out, s.rows, s.cols)); });
}

// -- The list ---------------------------------------------------------------------------------------------------------

template <class T>
std::string name(const char* verb, const char* granularity, level where) {
  return harness::path({verb, harness::name_of<T>, granularity, where.name});
}

template <class T, class Granularity>
void add_found(const char* granularity, level where, const Granularity& g, bool twice,
               const octet::scale_rule& rule = octet::scale_rule()) {
  harness::add(name<T>("quantize", granularity, where),
               [=](const harness::run& run) { quantize<T>(run, where, g, rule, twice); });
}
template <class T, class Granularity>
void add_given(const char* granularity, level where, const Granularity& g) {
  harness::add(name<T>("quantize_given", granularity, where),
               [=](const harness::run& run) { quantize_given<T>(run, where, g); });
  harness::add(name<T>("dequantize", granularity, where),
               [=](const harness::run& run) { dequantize<T>(run, where, g); });
}
template <class T, class Granularity>
void add_measure(const char* granularity, level where, const Granularity& g) {
  harness::add(name<T>("measure", granularity, where), [=](const harness::run& run) { measure<T>(run, where, g); });
}

template <class T>
void add_all(level where) {
  add_found<T>("per_tensor", where, octet::per_tensor{}, true);
  add_found<T>("per_channel_1", where, octet::per_channel{1}, true);
  add_found<T>("per_channel_0", where, octet::per_channel{0}, false);
  add_found<T>("per_token", where, octet::per_token{}, false);
  add_found<T>("1x128", where, octet::per_block<1, 128>{}, false);
  add_found<T>("128x128", where, octet::per_block<128, 128>{}, false);
  add_found<T>("1x32_mx", where, octet::per_block<1, 32>{}, false, octet::recipes::mx());
  add_given<T>("per_tensor", where, octet::per_tensor{});
  add_given<T>("per_token", where, octet::per_token{});
  add_given<T>("per_channel_1", where, octet::per_channel{1});
  add_given<T>("128x128", where, octet::per_block<128, 128>{});
  if (harness::is_mem(where)) return;  // measure computes so long that memory does not matter
  add_measure<T>("per_token", where, octet::per_token{});
  add_measure<T>("128x128", where, octet::per_block<128, 128>{});
}

// In L2, where memory does not hide what the data does.
void add_data(const harness::distribution& values) {
  harness::add(
      harness::path({"quantize", "float", "per_token", "data:" + std::string(values.name), harness::l2().name}),
      [=](const harness::run& run) {
        quantize<float>(run, harness::l2(), octet::per_token{}, octet::scale_rule(), false, values);
      });
}

}  // namespace

void harness::register_benchmarks() {
  for (const level where : {l1(), l2(), mem()}) {
    add_all<float>(where);
    add_all<octet::bfloat16>(where);
  }
  for (const distribution& values : distributions)
    if (values.name != normal.name) add_data(values);
}
