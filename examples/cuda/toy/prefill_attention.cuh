// Attention of whole prompts in bfloat16, the same in both runs: two batched products and a softmax, a sequence at a time.
// SPDX-License-Identifier: MIT
#pragma once

#include "model.cuh"
#include "products.cuh"

namespace toy {

// It reads queries, keys and values as the qkv product left them, not from the cache.
class prefill_attention {
  const cublas& library_;
  sizes s_;
  std::size_t score_row_;
  memory<bf16> by_head_, attended_, probabilities_;
  memory<float> scores_;
  product keys_times_queries_, values_times_probabilities_;

  std::size_t queries_a_head() const { return s_.group() * s_.prompt; }
  std::size_t all_heads() const { return s_.heads + 2 * s_.kv_heads; }

 public:
  prefill_attention(const cublas& library, const sizes& s)
      : library_(library),
        s_(s),
        score_row_((s.prompt + 15) / 16 * 16),
        by_head_(s.batch * all_heads() * s.prompt * s.head_dim(), "the prompts by heads"),
        attended_(s.batch * s.prompt * s.hidden, "the attention's result by heads"),
        probabilities_(s.heads * s.prompt * score_row_, "the probabilities"),
        scores_(s.heads * s.prompt * score_row_, "the scores"),
        keys_times_queries_(library, scores_request()),
        values_times_probabilities_(library, result_request()) {}

  // out: [batch * prompt, heads * head_dim]
  void run(const stream& on, const bf16* qkv, bf16* out) const {
    const std::size_t head = s_.prompt * s_.head_dim(), values = s_.batch * s_.prompt * s_.qkv_width();
    swap_order<<<blocks_for(values / 8), threads_a_block, 0, on>>>(qkv, by_head_.data(), s_.batch, s_.prompt,
                                                                   all_heads(), s_.head_dim());
    for (std::size_t b = 0; b < s_.batch; ++b) {
      const bf16* const queries = by_head_.data() + b * all_heads() * head;
      const bf16* const keys = queries + s_.heads * head;
      keys_times_queries_.run(library_, on, queries, keys, scores_.data());
      causal_softmax<<<static_cast<unsigned>(s_.heads * s_.prompt), threads_a_block, 0, on>>>(
          scores_.data(), probabilities_.data(), s_.prompt, score_row_);
      values_times_probabilities_.run(library_, on, probabilities_.data(), keys + s_.kv_heads * head,
                                      attended_.data() + b * s_.heads * head);
    }
    swap_order<<<blocks_for(attended_.size() / 8), threads_a_block, 0, on>>>(attended_.data(), out, s_.batch, s_.heads,
                                                                             s_.prompt, s_.head_dim());
    check(cudaGetLastError(), "the prompts' attention");
  }

 private:
  // The query heads of a group lie behind one another, so that for their key head they are one matrix.
  product_request scores_request() const {
    product_request r;
    r.name = "queries times keys";
    r.type = CUDA_R_16BF, r.result = CUDA_R_32F;
    r.rows = queries_a_head(), r.cols = s_.prompt, r.inner = s_.head_dim();
    r.x_row = s_.head_dim(), r.result_row = score_row_;
    r.factor = static_cast<float>(1 / std::sqrt(static_cast<double>(s_.head_dim())));
    r.batch = static_cast<int>(s_.kv_heads);
    r.x_stride = queries_a_head() * s_.head_dim(), r.w_stride = s_.prompt * s_.head_dim();
    r.result_stride = queries_a_head() * score_row_;
    return r;
  }
  product_request result_request() const {
    product_request r;
    r.name = "probabilities times values";
    r.type = CUDA_R_16BF, r.result = CUDA_R_16BF;
    r.rows = queries_a_head(), r.cols = s_.head_dim(), r.inner = s_.prompt;
    r.x_row = score_row_, r.result_row = s_.head_dim();
    r.transposed = false;
    r.batch = static_cast<int>(s_.kv_heads);
    r.x_stride = queries_a_head() * score_row_, r.w_stride = s_.prompt * s_.head_dim();
    r.result_stride = queries_a_head() * s_.head_dim();
    return r;
  }
};

}  // namespace toy
