// Attention of one new token a sequence over its paged cache in FP8 or bfloat16: the context is split, then combined.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstring>

#include "bf16.cuh"
#include "octet/cuda/convert.cuh"
#include "octet/ptx.hpp"
#include "octet/scale.hpp"

namespace toy {

// Tokens a page of the cache. It is also the 16 of the tensor cores' 16 x 8 x 16, so that a tile of keys lies in one page.
constexpr int page_size = 16;

// The keys or the values of one layer: pages of page_size slots of [kv_heads, head_dim].
template <class T>
struct page_view {
  const T* data;
  std::size_t page_stride, slot_stride;  // in elements
  const octet::descale* descales;        // [kv_heads]; of bfloat16 none
};

// What one step of decoding attends to. heads = kv_heads * group, and query head h reads key head h / group.
template <class T>
struct decode_attention {
  const bf16* queries;  // [batch] rows of [heads, head_dim], query_stride elements apart
  std::size_t query_stride;
  page_view<T> keys, values;
  const int* table;    // [batch, pages_a_sequence]: where each page of a sequence lies
  const int* lengths;  // [batch]: the keys that are there, 1 or more
  int pages_a_sequence, batch, kv_heads, group, head_dim;
  bf16* out;  // [batch, heads, head_dim]
};

// Between the two kernels: what each split of the context found, for [batch, heads, splits].
struct split_results {
  float* sums;    // [head_dim]: values times 2^(score - the split's largest)
  float2* share;  // the split's largest score, and the sum of 2^(score - largest)
  int splits, keys_a_split;
};

// How many splits fill a GPU: about two waves of 16 warps a multiprocessor, but no split below 128 keys, whose partial
// result would cost as much as its keys. keys_a_split is a multiple of 32, the largest step.
inline split_results split_context(int longest, int pairs_of_sequence_and_head, int multiprocessors) {
  const int most = (longest + 127) / 128;
  const int wanted = (32 * multiprocessors + pairs_of_sequence_and_head - 1) / pairs_of_sequence_and_head;
  const int keys = (longest + (wanted < most ? wanted : most) - 1) / (wanted < most ? wanted : most);
  const int keys_a_split = (keys + 31) / 32 * 32;
  return {nullptr, nullptr, (longest + keys_a_split - 1) / keys_a_split, keys_a_split};
}

template <class Pair>
__device__ unsigned word_of(const Pair& pair) {
  unsigned word;
  memcpy(&word, &pair, sizeof word);
  return word;
}

// What the tensor cores take from 32-bit words of cached values: pairs of 16-bit floats. E4M3 becomes half, in which it is
// exact, one instruction for two codes; bfloat16 stays what it is. (FP8 operands of mma.sync would be converted to half
// as well on sm_90, out of sight.)
template <class T>
struct tensor_core;

template <>
struct tensor_core<octet::e4m3> {
  // The two codes of the low half of a word. The instruction is named here, and not cuda::decode, since codes and halves
  // stay packed in words as the tensor cores take them.
  static __device__ unsigned halves(unsigned codes) {
    const auto low = static_cast<unsigned short>(codes);
#if OCTET_HAS_FP8_INSTRUCTIONS
    return octet::ptx::decode_to_halves<4, 3>(low);
#else
    const auto two = octet::bit_cast<octet::cuda::pack<octet::e4m3, 2>>(low);
    return octet::bit_cast<unsigned>(octet::cuda::decode<octet::float16>(two));
#endif
  }
  // Values 2i and 2i + 1.
  static __device__ unsigned adjacent(const unsigned* words, int i) {
    return halves(i % 2 == 0 ? words[i / 2] : words[i / 2] >> 16);
  }
  // Value i of both.
  static __device__ unsigned across(const unsigned* a, const unsigned* b, int i) {
    const unsigned mixed = __byte_perm(a[i / 4], b[i / 4], i % 4 < 2 ? 0x5140 : 0x7362);
    return halves(i % 2 == 0 ? mixed : mixed >> 16);
  }
  static __device__ unsigned pair(float low, float high) { return word_of(__floats2half2_rn(low, high)); }
  // sum += a * b: 16 x 16 times 16 x 8.
  static __device__ void multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

template <>
struct tensor_core<bf16> {
  static __device__ unsigned adjacent(const unsigned* words, int i) { return words[i]; }
  static __device__ unsigned across(const unsigned* a, const unsigned* b, int i) {
    return __byte_perm(a[i / 2], b[i / 2], i % 2 == 0 ? 0x5410 : 0x7632);
  }
  static __device__ unsigned pair(float low, float high) { return word_of(__floats2bfloat162_rn(low, high)); }
  static __device__ void multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

// A thread's part of a row, in accesses of up to 16 bytes that lie `apart` bytes from each other; zeros if there is none.
template <int Words>
__device__ void read(unsigned (&to)[Words], const void* from, int apart, bool there) {
  constexpr int access = Words < 4 ? Words : 4;
#pragma unroll
  for (int i = 0; i < Words; i += access) {
    const char* const at = static_cast<const char*>(from) + i / access * apart;
    if constexpr (access == 4) {
      const uint4 x = there ? __ldg(reinterpret_cast<const uint4*>(at)) : uint4{};
      to[i] = x.x, to[i + 1] = x.y, to[i + 2] = x.z, to[i + 3] = x.w;
    } else {
      static_assert(access == 2, "heads of 64 values and more");
      const uint2 x = there ? __ldg(reinterpret_cast<const uint2*>(at)) : uint2{};
      to[i] = x.x, to[i + 1] = x.y;
    }
  }
}

// A warp takes one split of one sequence's context for up to eight query heads of a group. Lane 4g + t of it holds, in the
// tensor cores' layout, row g and column pair t. Two products a tile of 16 keys:
//   scores [16 keys x 8 queries] = keys [16 x head_dim] * queries^T,
//   sums [head_dim x 8 queries] += values^T [head_dim x 16 keys] * probabilities [16 keys x 8 queries].
// In which order a product runs over its inner dimension is free, and so is which row is called which. So each lane reads
// 16 bytes at a time straight into its own operands: of a key the values that column t then stands for, and of four
// values (keys 2t, 2t + 1, 2t + 8, 2t + 9) the head_dim / 8 elements that row g then stands for. Nothing goes through shared memory.
template <class T, int D>
__global__ void __launch_bounds__(128) attend_to_splits(decode_attention<T> a, split_results found) {
  using core = tensor_core<T>;
  constexpr int tiles = 2 / static_cast<int>(sizeof(T));  // a step: the same bytes for FP8 and bfloat16
  constexpr int values_a_read = 16 / static_cast<int>(sizeof(T));
  constexpr int products = D / 16;
  constexpr int key_words = D * static_cast<int>(sizeof(T)) / 16, value_words = key_words / 2;
  constexpr int step = tiles * page_size;
  constexpr unsigned all = 0xFFFFFFFF;

  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int split = static_cast<int>(blockIdx.x * 4 + threadIdx.x / 32);
  const int eights = (a.group + 7) / 8;
  const int kv_head = static_cast<int>(blockIdx.y) / eights, first_query = static_cast<int>(blockIdx.y) % eights * 8;
  const int sequence = static_cast<int>(blockIdx.z);
  const int length = a.lengths[sequence], first = split * found.keys_a_split;
  const int end = first + found.keys_a_split < length ? first + found.keys_a_split : length;
  if (split >= found.splits || first >= end) return;

  const std::size_t heads = std::size_t(a.kv_heads) * a.group, head = std::size_t(kv_head) * a.group + first_query;
  unsigned query[products][2];
  {
    const bf16* const row = a.queries + sequence * a.query_stride + (head + g) * D;
#pragma unroll
    for (int i = 0; i < products; ++i) {
      const int value = 4 * i,
                at = value / values_a_read * 4 * values_a_read + t * values_a_read + value % values_a_read;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const bool there = first_query + g < a.group;
        const bf16* const two = row + at + 2 * half;
        query[i][half] = core::pair(there ? __bfloat162float(two[0]) : 0.0f, there ? __bfloat162float(two[1]) : 0.0f);
      }
    }
  }

  const int* const table = a.table + std::size_t(sequence) * a.pages_a_sequence;
  const auto in_page = [&](const page_view<T>& pages, int key, int row) {
    return pages.data + table[key / page_size] * pages.page_stride + row * pages.slot_stride + kv_head * D;
  };
  unsigned keys[tiles][2][key_words], values[tiles][4][value_words];
  const auto read_keys = [&](int key) {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int from = key + tile * page_size, row = g + 8 * i;
        const bool there = from + row < end;
        read(keys[tile][i], (there ? in_page(a.keys, from, row) : a.keys.data) + t * values_a_read, 64, there);
      }
  };
  const auto read_values = [&](int key) {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int from = key + tile * page_size, row = 2 * t + i % 2 + i / 2 * 8;
        const bool there = from + row < end;
        read(values[tile][i], (there ? in_page(a.values, from, row) : a.values.data) + g * (D / 8), 16, there);
      }
  };

  // Scores are in binades: 2^score is e^(query * key / sqrt(D)).
  const float scale = 1.44269504f / sqrtf(D) * (a.keys.descales != nullptr ? a.keys.descales[kv_head].value() : 1.0f);
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};  // of queries 2t and 2t + 1
  float sums[products][4] = {};
  read_keys(first);
  read_values(first);
  for (int key = first; key < end; key += step) {
    float score[tiles][4] = {};
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (int i = 0; i < products; ++i)
        core::multiply(score[tile],
                       {core::adjacent(keys[tile][0], 2 * i), core::adjacent(keys[tile][1], 2 * i),
                        core::adjacent(keys[tile][0], 2 * i + 1), core::adjacent(keys[tile][1], 2 * i + 1)},
                       query[i]);
    // The next keys are on their way while these are weighed, and the next values while the next keys are.
    if (key + step < end) read_keys(key + step);

    float before[2] = {largest[0], largest[1]};
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool there = key + tile * page_size + g + i / 2 * 8 < end;
        score[tile][i] = there ? score[tile][i] * scale : -INFINITY;
        largest[i % 2] = fmaxf(largest[i % 2], score[tile][i]);
      }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      for (int apart = 4; apart < 32; apart *= 2)
        largest[i] = fmaxf(largest[i], __shfl_xor_sync(all, largest[i], apart));
      before[i] = exp2f(before[i] - largest[i]);
      total[i] *= before[i];
    }
#pragma unroll
    for (int i = 0; i < products; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] *= before[j % 2];

#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        score[tile][i] = exp2f(score[tile][i] - largest[i % 2]);
        total[i % 2] += score[tile][i];
      }
      // This lane has the probabilities of keys g and g + 8 for queries 2t and 2t + 1. It needs those of query g.
      unsigned probability[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const unsigned mine = core::pair(score[tile][2 * i], score[tile][2 * i + 1]);
        const unsigned even = __shfl_sync(all, mine, 8 * t + g / 2), odd = __shfl_sync(all, mine, 8 * t + 4 + g / 2);
        probability[i] = __byte_perm(even, odd, g % 2 == 0 ? 0x5410 : 0x7632);
      }
#pragma unroll
      for (int i = 0; i < products; ++i)
        core::multiply(sums[i],
                       {core::across(values[tile][0], values[tile][1], 2 * i),
                        core::across(values[tile][0], values[tile][1], 2 * i + 1),
                        core::across(values[tile][2], values[tile][3], 2 * i),
                        core::across(values[tile][2], values[tile][3], 2 * i + 1)},
                       probability);
    }
    if (key + step < end) read_values(key + step);
  }

  const float descale = a.values.descales != nullptr ? a.values.descales[kv_head].value() : 1.0f;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    for (int apart = 4; apart < 32; apart *= 2) total[i] += __shfl_xor_sync(all, total[i], apart);
    const int query_of_group = first_query + 2 * t + i;
    if (query_of_group >= a.group) continue;
    const std::size_t result =
        (sequence * heads + std::size_t(kv_head) * a.group + query_of_group) * found.splits + split;
    if (g == 0) found.share[result] = {largest[i], total[i]};
    auto* const to = reinterpret_cast<float2*>(found.sums + result * D + g * (D / 8));
#pragma unroll
    for (int j = 0; j < products; ++j) to[j] = {sums[j][i] * descale, sums[j][2 + i] * descale};
  }
}

// A block a head of a sequence, a thread an element: the splits' sums, each by its share of the whole.
template <int D>
__global__ void __launch_bounds__(D) combine_splits(split_results found, const int* lengths, int heads, bf16* out) {
  const std::size_t head = blockIdx.x;
  const int length = lengths[head / heads], splits = (length + found.keys_a_split - 1) / found.keys_a_split;
  const float2* const share = found.share + head * found.splits;
  float largest = -INFINITY, total = 0, sum = 0;
  for (int i = 0; i < splits; ++i) largest = fmaxf(largest, share[i].x);
  for (int i = 0; i < splits; ++i) {
    const float weight = exp2f(share[i].x - largest);
    total += weight * share[i].y;
    sum += weight * found.sums[(head * found.splits + i) * D + threadIdx.x];
  }
  out[head * D + threadIdx.x] = __float2bfloat16(sum / total);
}

template <int D, class T>
cudaError_t attend_with_heads_of(const decode_attention<T>& a, const split_results& found, cudaStream_t stream) {
  const int heads = a.kv_heads * a.group;
  const dim3 blocks(static_cast<unsigned>((found.splits + 3) / 4),
                    static_cast<unsigned>(a.kv_heads * ((a.group + 7) / 8)), static_cast<unsigned>(a.batch));
  attend_to_splits<T, D><<<blocks, 128, 0, stream>>>(a, found);
  combine_splits<D><<<static_cast<unsigned>(a.batch * heads), D, 0, stream>>>(found, a.lengths, heads, a.out);
  return cudaGetLastError();
}

// Starts both kernels. Heads have 64 or 128 values; a cache's rows are multiples of 16 bytes.
template <class T>
cudaError_t attend(const decode_attention<T>& a, const split_results& found, cudaStream_t stream) {
  switch (a.head_dim) {
    case 64:
      return attend_with_heads_of<64>(a, found, stream);
    case 128:
      return attend_with_heads_of<128>(a, found, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace toy
