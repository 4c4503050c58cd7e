// Rows of decode attention, the toy transformer's kernels: over paged caches in E4M3 and bfloat16, against reading them.
// SPDX-License-Identifier: MIT
#include <string>
#include <type_traits>

#include "cuda/toy/attention.cuh"
#include "row.hpp"

namespace cuda_bench {
namespace {

using octet::descale;
using octet::e4m3;
using toy::bf16;

// Llama-3-8B's heads.
constexpr std::size_t kv_heads = 8, group = 4, head_dim = 128, width = kv_heads * head_dim;

constexpr int threads = 256, reads = 4;  // a thread, of 16 bytes each, all on their way at once

// Only reads. What it finds is written if it is all ones, which the compiler cannot know that it is not.
__global__ void __launch_bounds__(threads) read_all(const uint4* from, std::size_t n, unsigned* out) {
  const std::size_t first = std::size_t{blockIdx.x} * threads * reads + threadIdx.x;
  uint4 found[reads];
#pragma unroll
  for (int i = 0; i < reads; ++i) {
    const std::size_t at = first + static_cast<std::size_t>(i) * threads;
    found[i] = at < n ? __ldg(from + at) : uint4{};
  }
  unsigned all = 0xFFFFFFFF;
#pragma unroll
  for (int i = 0; i < reads; ++i) all &= found[i].x & found[i].y & found[i].z & found[i].w;
  if (all == 0xFFFFFFFF) *out = all;
}
cudaError_t read(const void* from, std::size_t bytes, unsigned* out, cudaStream_t stream) {
  const std::size_t n = bytes / sizeof(uint4), a_block = std::size_t{threads} * reads;
  read_all<<<static_cast<unsigned>((n + a_block - 1) / a_block), threads, 0, stream>>>(static_cast<const uint4*>(from),
                                                                                       n, out);
  return cudaGetLastError();
}

// How fast reading is, which is the mark of the others.
contest reading(arena& a) {
  const std::size_t bytes = a.moved() / sizeof(uint4) * sizeof(uint4);
  a.begin(bytes);
  const turns<e4m3> x = a.drawn<e4m3>(bytes);
  unsigned* const out = a.shared<unsigned>(1);
  return {std::to_string(bytes) + " bytes", static_cast<double>(bytes), 0,
          [=](std::size_t turn, cudaStream_t stream) { return read(x[turn], bytes, out, stream); },
          a.copy_of(static_cast<double>(bytes))};
}

// The sequences take their pages in turn, as those do that a server decodes together.
__global__ void place_pages(int* table, int* lengths, int pages, int batch, int context) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < pages * batch) table[i] = i % pages * batch + i / pages;
  if (i < batch) lengths[i] = context;
}

struct length {
  int batch, context;
};
// 32 sequences of 8192 tokens, or as much of that as a turn's bytes have room for.
length longest(const arena& a, std::size_t bytes_a_token) {
  length found{32, 8192};
  if (a.is_tiny()) return {2, 40};
  while (static_cast<std::size_t>(found.batch) * found.context * bytes_a_token > a.moved() && found.context > 16)
    found.context /= 2;
  return found;
}

template <class T>
contest attention(arena& a) {
  constexpr std::size_t bytes_a_token = 2 * width * sizeof(T);
  const length l = longest(a, bytes_a_token);
  const int pages = (l.context + toy::page_size - 1) / toy::page_size;
  const auto sequences = static_cast<std::size_t>(l.batch);
  const std::size_t heads = kv_heads * group, queries = sequences * heads * head_dim;
  const std::size_t cached = sequences * pages * toy::page_size * width;  // keys, and values
  const std::size_t bytes = sequences * l.context * bytes_a_token;
  a.begin(bytes);
  const turns<T> cache = a.drawn<T>(2 * cached);
  const bf16* const query = a.shared_drawn<bf16>(queries);
  const descale* const descales = std::is_same_v<T, e4m3> ? a.shared_drawn<descale>(2 * kv_heads) : nullptr;
  bf16* const out = a.shared<bf16>(queries);
  unsigned* const unread = a.shared<unsigned>(1);
  int* const table = a.shared<int>(sequences * pages);
  int* const lengths = a.shared<int>(sequences);
  place_pages<<<static_cast<unsigned>((l.batch * pages + 255) / 256), 256, 0, a.stream()>>>(table, lengths, pages,
                                                                                            l.batch, l.context);
  require(cudaGetLastError(), "the pages");
  int device = 0, multiprocessors = 0;
  require(cudaGetDevice(&device), "the device");
  require(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "the device");
  toy::split_results found = toy::split_context(l.context, static_cast<int>(sequences * kv_heads), multiprocessors);
  const std::size_t results = sequences * heads * static_cast<std::size_t>(found.splits);
  found.sums = a.shared<float>(results * head_dim);
  found.share = a.shared<float2>(results);

  const launch work = [=](std::size_t turn, cudaStream_t stream) {
    const descale* const of_values = descales != nullptr ? descales + kv_heads : nullptr;
    const toy::decode_attention<T> step{query,
                                        heads * head_dim,
                                        {cache[turn], toy::page_size * width, width, descales},
                                        {cache[turn] + cached, toy::page_size * width, width, of_values},
                                        table,
                                        lengths,
                                        pages,
                                        l.batch,
                                        static_cast<int>(kv_heads),
                                        static_cast<int>(group),
                                        static_cast<int>(head_dim),
                                        out};
    return toy::attend(step, found, stream);
  };
  const launch mark = [=](std::size_t turn, cudaStream_t stream) { return read(cache[turn], bytes, unread, stream); };
  return {std::to_string(l.batch) + " x " + std::to_string(l.context) + " tokens",
          static_cast<double>(bytes),
          0,
          work,
          mark,
          "reading"};
}

constexpr double goal = 0.7;

}  // namespace

void add_attention(std::vector<row>& rows) {
  const row all[] = {
      {"cuda/read", 0, reading},
      {"cuda/attention/e4m3", goal, attention<e4m3>},
      {"cuda/attention/bfloat16", goal, attention<bf16>},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace cuda_bench
