// Tensors with the statistics of a trained model's, drawn on the device from a seed with integers: the same everywhere.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "device.cuh"
#include "elementwise.cuh"
#include "octet/random.hpp"

namespace toy {

// Row r's values are mean + deviation * (a normal number) * gain(r). One row in `outlier_every` has the gain `outlier`
// (0: none); the others' gains are spread over a factor of two.
struct statistics_of_rows {
  float mean, deviation;
  int outlier_every;
  float outlier;
};

// A normal number, nearly: the sum of eight uniform 16-bit numbers, exact in a float. Mean 8 * 65535 / 2, deviation
// sqrt(8 * (65536^2 - 1) / 12).
__device__ inline float normal(const octet::philox_block& bits) {
  std::uint32_t sum = 0;
  for (const std::uint32_t word : bits.words) sum += (word & 0xFFFF) + (word >> 16);
  return (static_cast<float>(sum) - 262140.0f) * (1 / 53509.9f);
}

__global__ void draw_rows(bf16* x, std::size_t rows, std::size_t cols, statistics_of_rows s, std::uint64_t seed,
                          std::uint64_t tensor) {
  const std::size_t i = thread_number(), row = i / cols;
  if (row >= rows) return;
  const std::uint64_t stream = tensor << 40;
  const octet::philox_block of_row = octet::philox(seed, stream + (std::uint64_t{1} << 39) + row);
  const bool is_outlier = s.outlier_every != 0 && of_row.words[0] % s.outlier_every == 0;
  const float gain = is_outlier ? s.outlier : 0.7f + 0.7f * static_cast<float>(of_row.words[1] >> 8) * 0x1p-24f;
  x[i] = __float2bfloat16(s.mean + s.deviation * gain * normal(octet::philox(seed, stream + i)));
}

// Tensors numbered in the order in which they are drawn.
class drawing {
  const stream& on_;
  std::uint64_t seed_, drawn_ = 0;

 public:
  drawing(const stream& on, std::uint64_t seed) : on_(on), seed_(seed) {}

  memory<bf16> rows(std::size_t rows, std::size_t cols, const statistics_of_rows& s, const std::string& what) {
    memory<bf16> x(rows * cols, what);
    draw_rows<<<blocks_for(rows * cols), threads_a_block, 0, on_>>>(x.data(), rows, cols, s, seed_, ++drawn_);
    check(cudaGetLastError(), what);
    return x;
  }
};

}  // namespace toy
