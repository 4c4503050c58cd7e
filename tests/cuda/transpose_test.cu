// The quantized transpose against plain arithmetic on a matrix that is transposed first.
// SPDX-License-Identifier: MIT
#include "octet/cuda/transpose.cuh"
#include "tensors.hpp"

namespace {

namespace gpu = octet::cuda;
using octet::descale;
using octet::matrix_view;
using octet::scale_rule;
using tensors::shape;

// The input, its transpose, and codes for it; `first` moves the codes from an aligned address too.
template <class F, class T>
struct transposed {
  shape s;
  tensors::both<T> values;
  tensors::both<F> codes;
  std::vector<T> turned;
  std::size_t stride;

  explicit transposed(const shape& its)
      : s(its),
        values(tensors::values<T>(its)),
        codes(its.cols * (its.rows + its.first + 16) + 16, F::from_bits(0x2A)),
        turned(its.rows * its.cols, T(0.0f)),
        stride(its.rows + (its.first == 0 ? (16 - its.rows % 16) % 16 : 1)) {
    for (std::size_t r = 0; r < s.rows; ++r)
      for (std::size_t c = 0; c < s.cols; ++c) turned[c * s.rows + r] = values.host[s.first + r * s.in_stride + c];
  }
  matrix_view<const T> in_host() const { return {turned.data(), s.cols, s.rows}; }
  matrix_view<F> out_host() { return {codes.host.data() + s.first, s.cols, s.rows, stride}; }
  matrix_view<const T> in() { return {values.device.data() + s.first, s.rows, s.cols, s.in_stride}; }
  matrix_view<F> out() { return {codes.device.data() + s.first, s.cols, s.rows, stride}; }
};

template <class F, class T, std::size_t C>
std::size_t found(const shape& s, const scale_rule& rule) {
  transposed<F, T> m(s);
  const octet::per_block<1, C> granularity;
  tensors::both<descale> descales(octet::descale_count(granularity, s.cols, s.rows), descale(3));
  tensors::quantize(m.in_host(), granularity, rule, m.out_host(), descales.host.data());
  if (gpu::quantize_transposed_into(m.in(), granularity, rule, m.out(), descales.device.data()) != cudaSuccess)
    return 1;
  return m.codes.differences() + descales.differences();
}

template <class F, class T, class Granularity>
std::size_t given(const shape& s, const Granularity& granularity, octet::scaling how) {
  transposed<F, T> m(s);
  std::vector<descale> known;
  for (std::size_t i = 0; i < octet::descale_count(granularity, s.cols, s.rows); ++i)
    known.push_back(descale(0.01f * (1 + static_cast<float>(i % 7))));
  const tensors::both<descale> descales(known);
  tensors::quantize(m.in_host(), granularity, descales.host.data(), m.out_host(), how);
  const descale* const there = descales.device.data();
  if (gpu::quantize_transposed_into(m.in(), granularity, there, m.out(), how) != cudaSuccess) return 1;
  return m.codes.differences();
}

// Both copies from one reading: E8M0 codes where the descales are powers of two, swizzled for those of MX.
template <class F, class T, std::size_t C, class Descale>
std::size_t found_in_both(const shape& s, const scale_rule& rule, bool swizzled) {
  tensors::pair<F, T> straight(s);
  transposed<F, T> turned(s);
  const octet::per_block<1, C> granularity;
  const auto expected = [&](const auto& in, const auto& codes) {
    std::vector<descale> descales(octet::descale_count(granularity, in.rows, in.cols));
    tensors::quantize(in, granularity, rule, codes, descales.data());
    return descales;
  };
  const std::vector<descale> all[] = {expected(straight.in_host(), straight.out_host()),
                                      expected(turned.in_host(), turned.out_host())};
  const std::size_t rows[] = {s.rows, s.cols}, cols[] = {(s.cols + C - 1) / C, (s.rows + C - 1) / C};
  const auto place = [&](int i, Descale* d) {
    return swizzled ? gpu::swizzled_128x4(d, cols[i]) : gpu::row_major(d, cols[i]);
  };
  const auto stored = [](descale d) { return gpu::detail::stored_as<Descale>(d); };
  // What they will be on the host; on the device something else. What is left of a swizzled block is 0.
  Descale nothing;
  std::memset(static_cast<void*>(&nothing), 0, sizeof nothing);
  const auto room = [&](int i) { return place(i, nullptr).extent(rows[i], cols[i]); };
  tensors::both<Descale> descales(room(0), stored(descale(8))), turned_descales(room(1), stored(descale(8)));
  for (int i : {0, 1}) {
    auto& d = i == 0 ? descales.host : turned_descales.host;
    d.assign(d.size(), nothing);
    for (std::size_t r = 0; r < rows[i]; ++r)
      for (std::size_t c = 0; c < cols[i]; ++c) d[place(i, nullptr).index(r, c)] = stored(all[i][r * cols[i] + c]);
  }
  Descale *const to = descales.device.data(), *const turned_to = turned_descales.device.data();
  const cudaError_t error = swizzled
                                ? gpu::quantize_with_transpose_into(straight.in(), granularity, rule, straight.out(),
                                                                    place(0, to), turned.out(), place(1, turned_to))
                                : gpu::quantize_with_transpose_into(straight.in(), granularity, rule, straight.out(),
                                                                    to, turned.out(), turned_to);
  if (error != cudaSuccess) return 1;
  return straight.codes.differences() + turned.codes.differences() + descales.differences() +
         turned_descales.differences();
}

template <class F, class T, class Granularity>
std::size_t given_in_both(const shape& s, const Granularity& granularity, octet::scaling how) {
  tensors::pair<F, T> straight(s);
  transposed<F, T> turned(s);
  const auto known = [&](std::size_t rows, std::size_t cols) {
    std::vector<descale> d;
    for (std::size_t i = 0; i < octet::descale_count(granularity, rows, cols); ++i)
      d.push_back(descale(0.01f * (1 + static_cast<float>(i % 7))));
    return d;
  };
  const tensors::both<descale> descales(known(s.rows, s.cols)), turned_descales(known(s.cols, s.rows));
  tensors::quantize(straight.in_host(), granularity, descales.host.data(), straight.out_host(), how);
  tensors::quantize(turned.in_host(), granularity, turned_descales.host.data(), turned.out_host(), how);
  const descale *const there = descales.device.data(), *const turned_there = turned_descales.device.data();
  if (gpu::quantize_with_transpose_into(straight.in(), granularity, there, straight.out(), turned_there, turned.out(),
                                        how) != cudaSuccess)
    return 1;
  return straight.codes.differences() + turned.codes.differences();
}

template <class F, class T>
void every_shape() {
  for (const shape& s : tensors::shapes) {
    CAPTURE(s.rows);
    CAPTURE(s.cols);
    const scale_rule floats;
    scale_rule powers(octet::descale_form::e8m0_up);
    powers.on_nonfinite = octet::nonfinite::propagate;
    CHECK(found<F, T, 128>(s, floats) == 0);
    CHECK(found<F, T, 64>(s, powers) == 0);
    CHECK(found<F, T, 32>(s, powers) == 0);
    CHECK(found<F, T, 16>(s, floats) == 0);
    for (const octet::scaling how : {octet::scaling::divide, octet::scaling::multiply}) {
      CHECK(given<F, T>(s, octet::per_tensor{}, how) == 0);
      CHECK(given<F, T>(s, octet::per_token{}, how) == 0);
      CHECK(given<F, T>(s, octet::per_channel{1}, how) == 0);
      CHECK(given<F, T>(s, octet::per_block<128, 128>{100, 64}, how) == 0);
      CHECK(given<F, T>(s, octet::per_block<3, 20>{1, 5}, how) == 0);
    }
  }
}

}  // namespace

TEST_CASE("The transpose of floats is quantized as if it had been in memory") { every_shape<octet::e4m3, float>(); }
TEST_CASE("The transpose of bfloat16s is quantized as if it had been in memory") {
  every_shape<octet::e5m2, octet::bfloat16>();
}

TEST_CASE("A matrix and its transpose are quantized from one reading as each would be alone") {
  const scale_rule powers(octet::descale_form::e8m0_up);
  scale_rule floats;
  floats.on_nonfinite = octet::nonfinite::propagate;
  using octet::bfloat16;
  for (const shape& s : tensors::shapes) {
    CAPTURE(s.rows);
    CAPTURE(s.cols);
    CHECK(found_in_both<octet::e4m3, bfloat16, 32, octet::e8m0>(s, powers, true) == 0);
    CHECK(found_in_both<octet::e5m2, float, 32, descale>(s, powers, false) == 0);
    CHECK(found_in_both<octet::e4m3, bfloat16, 128, descale>(s, floats, false) == 0);
    CHECK(found_in_both<octet::e4m3, float, 64, descale>(s, floats, false) == 0);
    CHECK(found_in_both<octet::e2m1, octet::float16, 16, descale>(s, floats, false) == 0);
    for (const octet::scaling how : {octet::scaling::divide, octet::scaling::multiply}) {
      CHECK(given_in_both<octet::e4m3, bfloat16>(s, octet::per_tensor{}, how) == 0);
      CHECK(given_in_both<octet::e4m3, float>(s, octet::per_token{}, how) == 0);
      CHECK(given_in_both<octet::e5m2, bfloat16>(s, octet::per_block<3, 20>{1, 5}, how) == 0);
    }
  }
}

TEST_CASE("The codes of 128 x 128 blocks and of their transpose are the same") {
  const shape s{260, 272, 272, 272, 0};
  tensors::pair<octet::e4m3, octet::bfloat16> m(s);
  const octet::per_block<128, 128> blocks;
  device::buffer<descale> d(9);
  REQUIRE(gpu::quantize_into(m.in(), blocks, scale_rule(), m.out(), d.data()) == cudaSuccess);
  const gpu::descale_view<const descale> given(d.data(), 3, 1), turned_given(d.data(), 1, 3);
  device::buffer<octet::e4m3> turned(s.rows * s.cols), turned_too(s.rows * s.cols), straight(s.rows * s.cols);
  const auto turned_view = [&](auto& buffer) { return matrix_view(buffer.data(), s.cols, s.rows); };
  REQUIRE(gpu::quantize_transposed_into(m.in(), blocks, turned_given, turned_view(turned)) == cudaSuccess);
  REQUIRE(gpu::quantize_with_transpose_into(m.in(), blocks, given, matrix_view(straight.data(), s.rows, s.cols),
                                            turned_given, turned_view(turned_too)) == cudaSuccess);
  const std::vector<octet::e4m3> codes = m.codes.device.values();
  const std::vector<octet::e4m3> others[] = {turned.values(), turned_too.values(), straight.values()};
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < s.rows; ++r)
    for (std::size_t c = 0; c < s.cols; ++c) {
      const std::size_t places[] = {c * s.rows + r, c * s.rows + r, r * s.cols + c};
      for (int i : {0, 1, 2}) wrong += codes[r * s.out_stride + c].bits() != others[i][places[i]].bits() ? 1 : 0;
    }
  CHECK(wrong == 0);
}

TEST_CASE("What cannot be transposed is refused, and nothing is written") {
  const shape its{4, 16, 16, 16, 0};
  transposed<octet::e4m3, float> m(its);
  tensors::pair<octet::e4m3, float> straight(its);
  tensors::both<descale> d(16, descale(3)), other(16, descale(3));
  const scale_rule rule;
  const octet::per_block<1, 128> blocks;
  const auto refused = [](cudaError_t error) { return error == cudaErrorInvalidValue; };
  const auto in = m.in();
  const auto out = m.out(), rows = straight.out();
  descale *const to = d.device.data(), *const next = other.device.data();
  const matrix_view<const float> nothing(nullptr, 4, 16);
  CHECK(gpu::quantize_transposed_into(in, octet::per_block<1, 128>{0, 5}, rule, out, to) == cudaErrorNotSupported);
  CHECK(refused(gpu::quantize_transposed_into(in, blocks, rule, matrix_view(out.data, 4, 16), to)));
  CHECK(refused(gpu::quantize_transposed_into(nothing, blocks, rule, out, to)));

  const octet::per_block<1, 128> begun{0, 5};
  CHECK(gpu::quantize_with_transpose_into(in, begun, rule, rows, to, out, next) == cudaErrorNotSupported);
  CHECK(refused(gpu::quantize_with_transpose_into(in, blocks, rule, out, to, rows, next)));
  CHECK(refused(gpu::quantize_with_transpose_into(nothing, blocks, rule, rows, to, out, next)));
  const matrix_view over_input(reinterpret_cast<octet::e4m3*>(m.values.device.data()), 4, 16);
  CHECK(refused(gpu::quantize_with_transpose_into(in, blocks, rule, over_input, to, out, next)));
  CHECK(refused(
      gpu::quantize_with_transpose_into(in, blocks, rule, rows, reinterpret_cast<descale*>(rows.data), out, next)));
  CHECK(refused(gpu::quantize_with_transpose_into(in, blocks, rule, rows,
                                                  reinterpret_cast<descale*>(m.values.device.data()), out, next)));
  CHECK(refused(
      gpu::quantize_with_transpose_into(in, blocks, rule, rows, to, matrix_view(over_input.data, 16, 4), next)));
  CHECK(refused(
      gpu::quantize_with_transpose_into(in, blocks, rule, rows, to, out, reinterpret_cast<descale*>(out.data))));
  CHECK(refused(gpu::quantize_with_transpose_into(in, blocks, rule, rows, to, out, to)));
  CHECK(refused(gpu::quantize_with_transpose_into(in, blocks, rule, rows, to, matrix_view(rows.data, 16, 4), next)));
  CHECK(refused(
      gpu::quantize_with_transpose_into(in, blocks, rule, rows, reinterpret_cast<descale*>(out.data), out, next)));
  CHECK(refused(
      gpu::quantize_with_transpose_into(in, blocks, rule, rows, to, out, reinterpret_cast<descale*>(rows.data))));
  CHECK(refused(gpu::quantize_with_transpose_into(in, blocks, rule, rows, to, out,
                                                  reinterpret_cast<descale*>(m.values.device.data()))));
  const octet::per_tensor whole;
  const descale* const known = to;
  CHECK(refused(gpu::quantize_with_transpose_into(in, whole, known, rows, static_cast<const descale*>(nullptr), out)));
  CHECK(refused(gpu::quantize_with_transpose_into(in, whole, known, rows, known, matrix_view(rows.data, 16, 4))));
  const matrix_view<const float> none(nullptr, 0, 16);
  CHECK(gpu::quantize_with_transpose_into(none, whole, known, matrix_view(rows.data, 0, 16), known,
                                          matrix_view(out.data, 16, 0)) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(m.codes.differences() + straight.codes.differences() + d.differences() + other.differences() == 0);
}
