// Tensors for the device tests: the same values on both sides, and what each side made of them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "device.hpp"
#include "octet/granularity.hpp"
#include "octet/matrix.hpp"
#include "octet/scale.hpp"

namespace tensors {

// An array on the host and one on the device, alike at first.
template <class T>
struct both {
  std::vector<T> host;
  device::buffer<T> device;

  explicit both(const std::vector<T>& values) : host(values), device(values) {}
  both(std::size_t n, T value) : both(std::vector<T>(n, value)) {}
  void to_device() {
    REQUIRE(cudaMemcpy(device.data(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  std::size_t differences() const {
    const std::vector<T> found = device.values();
    std::size_t n = 0;
    for (std::size_t i = 0; i < host.size(); ++i)
      n += std::memcmp(static_cast<const void*>(&found[i]), &host[i], sizeof(T)) != 0 ? 1 : 0;
    return n;
  }
};

// Rows, columns, and how they lie: strides in elements, and the first element's distance from an aligned address.
struct shape {
  std::size_t rows, cols, in_stride, out_stride, first;
};
inline constexpr shape shapes[] = {
    {1, 1, 1, 1, 0},         {4, 16, 16, 16, 0},          {5, 17, 17, 17, 0},          {5, 300, 304, 320, 0},
    {3, 255, 256, 256, 1},   {9, 4097, 4112, 4112, 0},    {2, 16400, 16400, 16400, 0}, {300, 3, 4, 5, 0},
    {7, 128, 128, 128, 3},   {260, 272, 272, 272, 0},     {1, 300, 300, 300, 0},       {130, 1, 1, 1, 0},
    {129, 160, 160, 176, 0}, {2, 40000, 40000, 40000, 0}, {3, 2064, 2064, 2064, 0},    {3, 8208, 8208, 8208, 0},
    {3, 144, 144, 144, 0}};

// Values over 40 binades; whole rows of zeros, of tiny ones, and with NaN and infinity among them.
template <class T>
std::vector<T> values(const shape& s) {
  std::vector<T> x;
  std::uint64_t state = s.rows * 1000 + s.in_stride;
  for (std::size_t i = 0; i < s.rows * s.in_stride + 8; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::size_t row = i / s.in_stride;
    const int exponent = static_cast<int>(state >> 40 & 15) - (row % 4 == 1 ? 130 : 8);
    float value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31f, exponent);
    if (row % 4 == 2) value = std::copysign(0.0f, value);
    if (row % 4 == 3 && (state >> 44) % 5 == 0) value = std::numeric_limits<float>::infinity();
    if (row % 4 == 3 && (state >> 44) % 7 == 0) value = std::numeric_limits<float>::quiet_NaN();
    x.push_back(T(value));
  }
  return x;
}

// A matrix of values and one of codes, on both sides.
template <class F, class T>
struct pair {
  shape s;
  both<T> values;
  both<F> codes;

  explicit pair(const shape& its)
      : s(its), values(tensors::values<T>(its)), codes(its.rows * its.out_stride, F::from_bits(0x2A)) {}

  octet::matrix_view<const T> in_host() const { return {values.host.data() + s.first, s.rows, s.cols, s.in_stride}; }
  octet::matrix_view<const T> in() { return {values.device.data() + s.first, s.rows, s.cols, s.in_stride}; }
  octet::matrix_view<F> out_host() { return {codes.host.data(), s.rows, s.cols, s.out_stride}; }
  octet::matrix_view<F> out() { return {codes.device.data(), s.rows, s.cols, s.out_stride}; }
};

// What quantizing means, element by element in the host's own arithmetic: the amax of each tile, its scale, its codes.
template <class F, class T, class Granularity>
void quantize(octet::matrix_view<const T> in, const Granularity& granularity, const octet::scale_rule& rule,
              octet::matrix_view<F> codes, octet::descale* descales) {
  const octet::tiling t = granularity.tiles(in.rows, in.cols);
  const std::size_t tile_cols = t.cols.count(in.cols);
  std::vector<float> amax(t.rows.count(in.rows) * tile_cols, 0.0f);
  for (std::size_t r = 0; r < in.rows; ++r)
    for (std::size_t c = 0; c < in.cols; ++c) {
      const float magnitude = std::fabs(static_cast<float>(in(r, c)));
      float& largest = amax[t.rows.tile(r) * tile_cols + t.cols.tile(c)];
      if (std::isfinite(magnitude) || rule.on_nonfinite == octet::nonfinite::propagate)
        largest = std::isnan(magnitude) || magnitude > largest ? magnitude : largest;
    }
  std::vector<octet::group_scale> scales;
  for (const float a : amax) scales.push_back(octet::scale_of<F>(a, rule));
  for (std::size_t i = 0; i < scales.size(); ++i) descales[i] = scales[i].stored;
  for (std::size_t r = 0; r < in.rows; ++r)
    for (std::size_t c = 0; c < in.cols; ++c) {
      const octet::group_scale& s = scales[t.rows.tile(r) * tile_cols + t.cols.tile(c)];
      const auto x = static_cast<float>(in(r, c));
      codes(r, c) = F(s.divides ? x / s.stored.value() : x * s.multiplier.value());
    }
}
// With descales that are given.
template <class F, class T, class Granularity>
void quantize(octet::matrix_view<const T> in, const Granularity& granularity, const octet::descale* descales,
              octet::matrix_view<F> codes, octet::scaling how = octet::scaling::divide) {
  const octet::tiling t = granularity.tiles(in.rows, in.cols);
  for (std::size_t r = 0; r < in.rows; ++r)
    for (std::size_t c = 0; c < in.cols; ++c) {
      const octet::descale d = descales[t.rows.tile(r) * t.cols.count(in.cols) + t.cols.tile(c)];
      const octet::group_scale s = octet::scale_of(d, how);
      const auto x = static_cast<float>(in(r, c));
      codes(r, c) = F(s.divides ? x / d.value() : x * s.multiplier.value());
    }
}
// And back: the product in double is exact, and rounded once.
template <class F, class T, class Granularity>
void dequantize(octet::matrix_view<F> codes, const Granularity& granularity, const octet::descale* descales,
                octet::matrix_view<T> out) {
  const octet::tiling t = granularity.tiles(out.rows, out.cols);
  for (std::size_t r = 0; r < out.rows; ++r)
    for (std::size_t c = 0; c < out.cols; ++c) {
      const octet::descale d = descales[t.rows.tile(r) * t.cols.count(out.cols) + t.cols.tile(c)];
      const double value = static_cast<double>(codes(r, c)) * d.value();
      out(r, c) = std::isnan(value) ? T(octet::bit_cast<float>(0x7FFFFFFFu)) : static_cast<T>(value);
    }
}

}  // namespace tensors
