// The device's quantizers against the host's, which are tested elsewhere: the same codes and the same descales.
// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstring>
#include <limits>

#include "device.hpp"
#include "octet/cuda/quantize.cuh"
#include "octet/quantize.hpp"

namespace {

namespace gpu = octet::cuda;
using octet::descale;
using octet::descale_form;
using octet::scaling;

// Values over 40 binades; whole rows of zeros, of tiny ones, and with NaN and infinity among them.
template <class T>
std::vector<T> values(std::size_t rows, std::size_t stride) {
  std::vector<T> x;
  std::uint64_t state = rows * 1000 + stride;
  for (std::size_t i = 0; i < rows * stride + 8; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::size_t row = i / (stride == 0 ? 1 : stride);
    const int exponent = static_cast<int>(state >> 40 & 15) - (row % 4 == 1 ? 130 : 8);
    float value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31f, exponent);
    if (row % 4 == 2) value = 0;
    if (row % 4 == 3 && (state >> 44) % 5 == 0) value = std::numeric_limits<float>::infinity();
    if (row % 4 == 3 && (state >> 44) % 7 == 0) value = std::numeric_limits<float>::quiet_NaN();
    x.push_back(T(value));
  }
  return x;
}

struct shape {
  std::size_t rows, cols, in_stride, out_stride, first;
};
const shape shapes[] = {
    {1, 1, 1, 1, 0},       {4, 16, 16, 16, 0},       {5, 17, 17, 17, 0},          {5, 300, 304, 320, 0},
    {3, 255, 256, 256, 1}, {9, 4097, 4112, 4112, 0}, {2, 70001, 70016, 70016, 0}, {300, 3, 4, 5, 0},
    {7, 128, 128, 128, 3}};

template <class F, class T>
std::size_t wrong_tokens(const shape& s, const octet::scale_rule& rule) {
  const std::vector<T> x = values<T>(s.rows, s.in_stride);
  const octet::matrix_view<const T> in(x.data() + s.first, s.rows, s.cols, s.in_stride);
  std::vector<F> expected(s.rows * s.out_stride, F::from_bits(0x2A));
  std::vector<descale> expected_descales(s.rows, descale(3));
  octet::quantize_into(in, octet::per_token{}, rule,
                       octet::matrix_view<F>(expected.data(), s.rows, s.cols, s.out_stride), expected_descales.data());
  device::buffer<T> from(x);
  device::buffer<F> codes(std::vector<F>(s.rows * s.out_stride, F::from_bits(0x2A)));
  device::buffer<descale> descales(std::vector<descale>(s.rows, descale(3)));
  if (gpu::quantize_tokens(from.data() + s.first, s.in_stride, codes.data(), s.out_stride, descales.data(), s.rows,
                           s.cols, nullptr, rule) != cudaSuccess)
    return 1;
  const std::vector<F> found = codes.values();
  const std::vector<descale> found_descales = descales.values();
  return (std::memcmp(static_cast<const void*>(found.data()), expected.data(), found.size()) != 0 ? 1 : 0) +
         (std::memcmp(static_cast<const void*>(found_descales.data()), expected_descales.data(), 4 * s.rows) != 0 ? 1
                                                                                                                  : 0);
}

template <class F, class T>
std::size_t wrong_given(const shape& s, float d, scaling how) {
  const std::vector<T> x = values<T>(s.rows, s.in_stride);
  const octet::matrix_view<const T> in(x.data() + s.first, s.rows, s.cols, s.in_stride);
  std::vector<F> expected(s.rows * s.out_stride, F::from_bits(0x2A));
  const descale known(d);
  octet::quantize_into(in, octet::per_tensor{}, &known,
                       octet::matrix_view<F>(expected.data(), s.rows, s.cols, s.out_stride), how);
  device::buffer<T> from(x);
  device::buffer<F> codes(std::vector<F>(s.rows * s.out_stride, F::from_bits(0x2A)));
  device::buffer<descale> descales(std::vector<descale>{known});
  if (gpu::quantize(from.data() + s.first, s.in_stride, codes.data(), s.out_stride, descales.data(), s.rows, s.cols,
                    nullptr, how) != cudaSuccess)
    return 1;
  const std::vector<F> found = codes.values();
  return std::memcmp(static_cast<const void*>(found.data()), expected.data(), found.size()) != 0 ? 1 : 0;
}

template <class F, class T>
void every_shape() {
  std::size_t wrong = 0;
  for (const shape& s : shapes) {
    for (const descale_form form : {descale_form::float32, descale_form::e8m0_up, descale_form::e8m0_floor})
      for (const scaling how : {scaling::divide, scaling::multiply, scaling::scale_first})
        wrong += wrong_tokens<F, T>(s, octet::scale_rule(form, how));
    for (const float d : {1.0f, 0.00683594f, 0x1p-130f, 0x1p120f})
      for (const scaling how : {scaling::divide, scaling::multiply}) wrong += wrong_given<F, T>(s, d, how);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("The device quantizes as the host does, per token and with a descale that is given") {
  every_shape<octet::e4m3, float>();
  every_shape<octet::e4m3, octet::bfloat16>();
  every_shape<octet::e5m2, octet::float16>();
}

TEST_CASE("What cannot be quantized is refused") {
  device::buffer<float> x(values<float>(4, 16));
  device::buffer<octet::e4m3> codes(64);
  device::buffer<descale> d(4);
  const float* const nothing = nullptr;
  CHECK(gpu::quantize_tokens(nothing, 16, codes.data(), 16, d.data(), 0, 16) == cudaSuccess);
  CHECK(gpu::quantize_tokens(nothing, 16, codes.data(), 16, d.data(), 4, 16) == cudaErrorInvalidValue);
  CHECK(gpu::quantize_tokens(x.data(), 15, codes.data(), 16, d.data(), 4, 16) == cudaErrorInvalidValue);
  CHECK(gpu::quantize_tokens(x.data(), 16, codes.data(), 15, d.data(), 4, 16) == cudaErrorInvalidValue);
  CHECK(gpu::quantize(x.data(), 16, codes.data(), 16, nullptr, 4, 16) == cudaErrorInvalidValue);
  CHECK(gpu::quantize(x.data(), 16, reinterpret_cast<octet::e4m3*>(x.data()), 16, d.data(), 4, 16) ==
        cudaErrorInvalidValue);
  auto* const inside = reinterpret_cast<descale*>(x.data());
  CHECK(gpu::quantize_tokens(x.data(), 16, codes.data(), 16, inside, 4, 16) == cudaErrorInvalidValue);
  CHECK(gpu::quantize(x.data(), 16, codes.data(), 16, inside, 4, 16) == cudaSuccess);  // only read
  auto* const among_codes = reinterpret_cast<descale*>(codes.data());
  CHECK(gpu::quantize(x.data(), 16, codes.data(), 16, among_codes, 4, 16) == cudaErrorInvalidValue);
  octet::scale_rule rule;
  rule.on_nonfinite = octet::nonfinite::propagate;
  CHECK(gpu::quantize_tokens(x.data(), 16, codes.data(), 16, d.data(), 4, 16, nullptr, rule) == cudaErrorNotSupported);
}
