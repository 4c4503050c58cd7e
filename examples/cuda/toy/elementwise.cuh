// What stands between a decoder's products, the same in both precisions: norms, rotary positions, gate, softmax.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cub/block/block_reduce.cuh>

#include "bf16.cuh"
#include "octet/cuda/convert.cuh"

namespace toy {

using eight = octet::cuda::pack<bf16, 8>;  // one access of 16 bytes
constexpr int threads_a_block = 256;

__device__ inline eight load(const bf16* p) { return *reinterpret_cast<const eight*>(p); }
__device__ inline void store(bf16* p, const eight& values) { *reinterpret_cast<eight*>(p) = values; }
__device__ inline float wide(bf16 x) { return __bfloat162float(x); }
__device__ inline std::size_t thread_number() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
inline unsigned blocks_for(std::size_t threads) {
  return static_cast<unsigned>((threads + threads_a_block - 1) / threads_a_block);
}

// The sum of a number a thread, in every thread.
__device__ inline float sum_of_block(float x) {
  using reduction = cub::BlockReduce<float, threads_a_block>;
  __shared__ typename reduction::TempStorage shared;
  __shared__ float sum;
  __syncthreads();
  const float found = reduction(shared).Sum(x);
  if (threadIdx.x == 0) sum = found;
  __syncthreads();
  return sum;
}

// A block a row of `hidden` values: sum = x + delta (of which there may be none), normed = sum / rms(sum) * gain. sum may
// be x.
__global__ void __launch_bounds__(threads_a_block)
    add_and_norm(const bf16* x, const bf16* delta, const bf16* gain, bf16* sum, bf16* normed, std::size_t hidden) {
  const std::size_t row = blockIdx.x * hidden;
  float squares = 0;
  for (std::size_t i = threadIdx.x * 8; i < hidden; i += threads_a_block * 8) {
    eight values = load(x + row + i);
    if (delta != nullptr) {
      const eight more = load(delta + row + i);
      for (int j = 0; j < 8; ++j) values.value[j] = __float2bfloat16(wide(values.value[j]) + wide(more.value[j]));
    }
    for (int j = 0; j < 8; ++j) squares += wide(values.value[j]) * wide(values.value[j]);
    store(sum + row + i, values);
  }
  const float factor = rsqrtf(sum_of_block(squares) / static_cast<float>(hidden) + 1e-5f);
  for (std::size_t i = threadIdx.x * 8; i < hidden; i += threads_a_block * 8) {
    eight values = load(sum + row + i);
    const eight gains = load(gain + i);
    for (int j = 0; j < 8; ++j)
      values.value[j] = __float2bfloat16(wide(values.value[j]) * factor * wide(gains.value[j]));
    store(normed + row + i, values);
  }
}

// Rotary positions: of each token's first `heads` heads, elements i and i + head_dim / 2 are turned by the token's position
// times theta^(-2i / head_dim); turns [position, head_dim / 2] holds the cosines and sines. In place; a thread a pair.
__global__ void rotate(bf16* x, std::size_t row_stride, const int* positions, const float2* turns, std::size_t tokens,
                       int heads, int head_dim) {
  const int half = head_dim / 2;
  const std::size_t n = thread_number(), token = n / (std::size_t(heads) * half);
  if (token >= tokens) return;
  const int head = static_cast<int>(n / half % heads), i = static_cast<int>(n % half);
  bf16* const at = x + token * row_stride + head * head_dim + i;
  const float2 turn = turns[std::size_t(positions[token]) * half + i];
  const float a = wide(at[0]), b = wide(at[half]);
  at[0] = __float2bfloat16(a * turn.x - b * turn.y);
  at[half] = __float2bfloat16(b * turn.x + a * turn.y);
}

// out = silu(gate) * up for rows of [gate, up], `width` each; a thread eight values.
__global__ void gate(const bf16* gate_and_up, bf16* out, std::size_t tokens, std::size_t width) {
  const std::size_t first = thread_number() * 8, token = first / width, i = first % width;
  if (token >= tokens) return;
  const bf16* const row = gate_and_up + token * 2 * width;
  eight g = load(row + i);
  const eight up = load(row + width + i);
  for (int j = 0; j < 8; ++j) {
    const float x = wide(g.value[j]);
    g.value[j] = __float2bfloat16(x / (1 + expf(-x)) * wide(up.value[j]));
  }
  store(out + token * width + i, g);
}

// [outer, n, m, head_dim] to [outer, m, n, head_dim]: tokens of heads to heads of tokens, and back.
__global__ void swap_order(const bf16* in, bf16* out, std::size_t outer, std::size_t n, std::size_t m,
                           std::size_t head_dim) {
  const std::size_t at = thread_number() * 8, row = at / head_dim;
  if (row >= outer * n * m) return;
  const std::size_t o = row / (n * m), i = row / m % n, j = row % m;
  store(out + ((o * m + j) * n + i) * head_dim + at % head_dim, load(in + at));
}

// A block a row of scores, softmax over those a causal mask leaves: row r is of token r % tokens, and sees as many and one.
// Rows are `stride` apart; what is masked becomes zero.
__global__ void __launch_bounds__(threads_a_block)
    causal_softmax(const float* scores, bf16* probabilities, std::size_t tokens, std::size_t stride) {
  using reduction = cub::BlockReduce<float, threads_a_block>;
  __shared__ typename reduction::TempStorage shared;
  __shared__ float largest;
  const float* const row = scores + blockIdx.x * stride;
  bf16* const out = probabilities + blockIdx.x * stride;
  const std::size_t seen = blockIdx.x % tokens + 1;
  float most = -INFINITY, sum = 0;
  for (std::size_t i = threadIdx.x; i < seen; i += threads_a_block) most = fmaxf(most, row[i]);
  most = reduction(shared).Reduce(most, [](float a, float b) { return fmaxf(a, b); });
  if (threadIdx.x == 0) largest = most;
  __syncthreads();
  for (std::size_t i = threadIdx.x; i < seen; i += threads_a_block) sum += expf(row[i] - largest);
  sum = sum_of_block(sum);
  for (std::size_t i = threadIdx.x; i < stride; i += threads_a_block)
    out[i] = __float2bfloat16(i < seen ? expf(row[i] - largest) / sum : 0);
}

}  // namespace toy
