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

template <class F, class T>
void every_shape() {
  for (const shape& s : tensors::shapes) {
    CAPTURE(s.rows);
    CAPTURE(s.cols);
    const scale_rule floats, powers(octet::descale_form::e8m0_up);
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

TEST_CASE("The codes of 128 x 128 blocks and of their transpose are the same") {
  const shape s{260, 272, 272, 272, 0};
  tensors::pair<octet::e4m3, octet::bfloat16> m(s);
  const octet::per_block<128, 128> blocks;
  device::buffer<descale> d(9);
  REQUIRE(gpu::quantize_into(m.in(), blocks, scale_rule(), m.out(), d.data()) == cudaSuccess);
  device::buffer<octet::e4m3> turned(s.rows * s.cols);
  const gpu::descale_view<const descale> theirs(d.data(), 1, 3);
  REQUIRE(gpu::quantize_transposed_into(m.in(), blocks, theirs, matrix_view(turned.data(), s.cols, s.rows)) ==
          cudaSuccess);
  const std::vector<octet::e4m3> codes = m.codes.device.values(), back = turned.values();
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < s.rows; ++r)
    for (std::size_t c = 0; c < s.cols; ++c)
      wrong += codes[r * s.out_stride + c].bits() != back[c * s.rows + r].bits() ? 1 : 0;
  CHECK(wrong == 0);
}

TEST_CASE("What cannot be transposed is refused") {
  transposed<octet::e4m3, float> m({4, 16, 16, 16, 0});
  device::buffer<descale> d(16);
  const scale_rule rule;
  CHECK(gpu::quantize_transposed_into(m.in(), octet::per_block<1, 128>{0, 5}, rule, m.out(), d.data()) ==
        cudaErrorNotSupported);
  CHECK(gpu::quantize_transposed_into(m.in(), octet::per_block<1, 128>{}, rule, matrix_view(m.out().data, 4, 16),
                                      d.data()) == cudaErrorInvalidValue);
  const matrix_view<const float> nothing(nullptr, 4, 16);
  CHECK(gpu::quantize_transposed_into(nothing, octet::per_block<1, 128>{}, rule, m.out(), d.data()) ==
        cudaErrorInvalidValue);
}
