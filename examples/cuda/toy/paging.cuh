// Where the tokens of each sequence lie in a paged cache, and how they get there.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "attention.cuh"
#include "elementwise.cuh"
#include "model.cuh"
#include "octet/cuda/paged.cuh"

namespace toy {

// The sequences take their pages in turn, as those do that a server decodes together: page p of sequence b is page
// p * batch + b of the cache.
class paging {
  sizes s_;

 public:
  explicit paging(const sizes& s) : s_(s) {}

  std::size_t pages_a_sequence() const { return (s_.context + page_size - 1) / page_size; }
  std::size_t slots() const { return pages_a_sequence() * s_.batch * page_size; }

  std::vector<int> table() const {
    std::vector<int> pages;
    for (std::size_t b = 0; b < s_.batch; ++b)
      for (std::size_t p = 0; p < pages_a_sequence(); ++p) pages.push_back(static_cast<int>(p * s_.batch + b));
    return pages;
  }

  // The slots of `count` tokens of each sequence, from a position on; those beyond the context's last but one, which is
  // left to the token that is decoded, are -1: skipped.
  std::vector<std::int64_t> slots_of_prompt(std::size_t first, std::size_t count) const {
    std::vector<std::int64_t> found;
    for (std::size_t b = 0; b < s_.batch; ++b)
      for (std::size_t position = first; position < first + count; ++position)
        found.push_back(position + 1 < s_.context ? slot(b, position) : -1);
    return found;
  }
  std::vector<std::int64_t> slots_of_token() const {
    std::vector<std::int64_t> found;
    for (std::size_t b = 0; b < s_.batch; ++b) found.push_back(slot(b, s_.context - 1));
    return found;
  }

 private:
  std::int64_t slot(std::size_t b, std::size_t position) const {
    return static_cast<std::int64_t>((position / page_size * s_.batch + b) * page_size + position % page_size);
  }
};

// Keys or values of one layer on their way to its cache: [tokens, kv_heads * head_dim].
struct new_tokens {
  const bf16* rows;
  std::size_t tokens, width, row_stride, head_dim;
};

// Row r goes to slot slots[r] of a cache of so many slots, or nowhere if that is negative. A thread eight values.
__global__ void append_rows(new_tokens x, const std::int64_t* slots, bf16* cache) {
  const std::size_t first = thread_number() * 8, token = first / x.width, i = first % x.width;
  if (token >= x.tokens || slots[token] < 0) return;
  store(cache + static_cast<std::size_t>(slots[token]) * x.width + i, load(x.rows + token * x.row_stride + i));
}
inline cudaError_t append(const new_tokens& x, const std::int64_t* slots, bf16* cache, std::size_t,
                          const octet::descale*, cudaStream_t on) {
  append_rows<<<blocks_for(x.tokens * x.width / 8), threads_a_block, 0, on>>>(x, slots, cache);
  return cudaGetLastError();
}
inline cudaError_t append(const new_tokens& x, const std::int64_t* slots, octet::e4m3* cache, std::size_t cache_slots,
                          const octet::descale* descales, cudaStream_t on) {
  const octet::cuda::paged_cache<octet::e4m3> pages(cache, cache_slots / page_size, page_size, x.width / x.head_dim,
                                                    x.head_dim);
  return octet::cuda::append_into(octet::matrix_view<const bf16>(x.rows, x.tokens, x.width, x.row_stride), slots, pages,
                                  octet::cuda::per_head(x.head_dim), descales, octet::scaling::divide, on);
}

}  // namespace toy
