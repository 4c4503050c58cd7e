// The decoder, written once for both precisions: layers of grouped-query attention and a gated MLP over a paged cache.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>

#include "paging.cuh"
#include "precision.cuh"
#include "prefill_attention.cuh"

namespace toy {

// What the program runs on.
struct machine {
  stream on;
  cublas library;
  int multiprocessors;
};

// A pass of the decoder over some tokens: all prompts (prefill), or one new token of each sequence (decode). It owns what
// lies between the layers' steps, and the products, which are chosen before anything is timed.
template <class P>
struct pass {
  bool is_prefill;
  std::size_t tokens;
  const bf16* input;  // [tokens, hidden]
  memory<int> positions;
  std::vector<std::vector<std::int64_t>> slots;  // of the tokens; and, of a prompt, those that its repetitions fill
  std::vector<memory<std::int64_t>> slots_there;
  memory<bf16> x, normed, qkv, attended, delta, gate_up, gated;
  stored<P> operand;  // of every product in turn
  std::vector<std::vector<product>> products;
  std::unique_ptr<prefill_attention> prompts;  // of prefill
  // Of decode:
  memory<int> table, lengths;
  memory<float> split_sums;
  memory<float2> split_shares;
  split_results splits;

  std::vector<bf16> output(const stream& on) const { return on.download(normed); }
};

// Keys or values that were just appended.
template <class P>
struct appended {
  std::size_t layer;
  bool are_keys;
  new_tokens rows;
  const std::vector<std::vector<std::int64_t>>& slots;
  const memory<typename P::value>& cache;
};

// Who watches a first pass, which is not recorded in a graph: the codes, and what went into the cache.
template <class P>
struct watching {
  witness* codes;
  std::function<void(const appended<P>&)> cache;
};

template <class P>
class decoder {
  using value = typename P::value;
  struct layer {
    std::array<stored<P>, linears> weights;
    memory<value> keys, values;  // [slots, kv_heads * head_dim]
  };

  const machine& on_;
  const model& model_;
  sizes s_;
  paging pages_;
  sharing shared_;
  std::vector<layer> layers_;
  memory<octet::descale> kv_descales_;  // [layers, keys and values, kv_heads]; none in bfloat16

 public:
  decoder(const machine& on, const model& m, const quantizing& how, const std::vector<octet::descale>& kv_descales)
      : on_(on), model_(m), s_(m.shape), pages_(m.shape), shared_(how.shared) {
    kv_descales_ = on.on.upload(kv_descales, "the cache's descales");
    for (std::size_t i = 0; i < s_.layers; ++i) {
      layer l;
      for (std::size_t j = 0; j < linears; ++j) {
        const linear_shape w = shapes_of(s_)[j];
        const std::string name = lab::text("layer %zu weights of %s", i, linear_names[j]);
        l.weights[j] = stored<P>(w.outputs, w.inputs, shared_, name);
        l.weights[j].take(on.on, how, name, m.layers[i].weights[j].data(), w.outputs, w.inputs);
      }
      l.keys = empty_cache("the cache of keys");
      l.values = empty_cache("the cache of values");
      layers_.push_back(std::move(l));
    }
  }

  pass<P> prefill(bool fast_accumulation) const {
    pass<P> p = pass_over(true, s_.batch * s_.prompt, model_.prompts.data(), fast_accumulation);
    std::vector<int> positions;
    for (std::size_t b = 0; b < s_.batch; ++b)
      for (std::size_t i = 0; i < s_.prompt; ++i) positions.push_back(static_cast<int>(i));
    p.positions = on_.on.upload(positions, "the positions");
    for (std::size_t first = 0; first == 0 || first + 1 < s_.context; first += s_.prompt)
      p.slots.push_back(pages_.slots_of_prompt(first, s_.prompt));
    for (const auto& slots : p.slots) p.slots_there.push_back(on_.on.upload(slots, "the slots"));
    p.prompts = std::make_unique<prefill_attention>(on_.library, s_);
    return p;
  }

  pass<P> decode(bool fast_accumulation) const {
    pass<P> p = pass_over(false, s_.batch, model_.token.data(), fast_accumulation);
    p.positions = on_.on.upload(std::vector<int>(s_.batch, static_cast<int>(s_.context - 1)), "the positions");
    p.slots.push_back(pages_.slots_of_token());
    p.slots_there.push_back(on_.on.upload(p.slots[0], "the slots"));
    p.table = on_.on.upload(pages_.table(), "the page table");
    p.lengths = on_.on.upload(std::vector<int>(s_.batch, static_cast<int>(s_.context)), "the lengths");
    p.splits =
        split_context(static_cast<int>(s_.context), static_cast<int>(s_.batch * s_.kv_heads), on_.multiprocessors);
    const std::size_t results = s_.batch * s_.heads * static_cast<std::size_t>(p.splits.splits);
    p.split_sums = memory<float>(results * s_.head_dim(), "the splits' sums");
    p.split_shares = memory<float2>(results, "the splits' shares");
    p.splits.sums = p.split_sums.data(), p.splits.share = p.split_shares.data();
    return p;
  }

  // From p.input to p.output. A watched pass over prompts also repeats their keys and values until the context is full.
  void forward(pass<P>& p, const watching<P>* watched = nullptr) const {
    const quantizing how{shared_, watched != nullptr ? watched->codes : nullptr};
    const bf16* x = p.input;
    const bf16* delta = nullptr;
    for (std::size_t i = 0; i < s_.layers; ++i) {
      const layer& l = layers_[i];
      norm(p, x, delta, model_.layers[i].attention_norm);
      multiply(p, how, i, linear::qkv, p.normed, p.qkv);
      rotate_heads(p);
      append_to(p, i, true, l.keys, watched);
      append_to(p, i, false, l.values, watched);
      if (p.is_prefill)
        p.prompts->run(on_.on, p.qkv.data(), p.attended.data());
      else
        attend_to_cache(p, i);
      multiply(p, how, i, linear::out, p.attended, p.delta);
      norm(p, p.x.data(), p.delta.data(), model_.layers[i].mlp_norm);
      multiply(p, how, i, linear::gate_up, p.normed, p.gate_up);
      gate<<<blocks_for(p.tokens * s_.ffn / 8), threads_a_block, 0, on_.on>>>(p.gate_up.data(), p.gated.data(),
                                                                              p.tokens, s_.ffn);
      multiply(p, how, i, linear::down, p.gated, p.delta);
      x = p.x.data(), delta = p.delta.data();
    }
    norm(p, x, delta, model_.final_norm);
    check(cudaGetLastError(), "a pass");
  }

 private:
  pass<P> pass_over(bool is_prefill, std::size_t tokens, const bf16* input, bool fast_accumulation) const {
    pass<P> p;
    p.is_prefill = is_prefill, p.tokens = tokens, p.input = input;
    const struct {
      memory<bf16>& buffer;
      std::size_t width;
    } buffers[] = {{p.x, s_.hidden},     {p.normed, s_.hidden},   {p.qkv, s_.qkv_width()}, {p.attended, s_.hidden},
                   {p.delta, s_.hidden}, {p.gate_up, 2 * s_.ffn}, {p.gated, s_.ffn}};
    for (const auto& b : buffers) b.buffer = memory<bf16>(tokens * b.width, "a pass");
    p.operand = stored<P>(tokens, std::max(s_.hidden, s_.ffn), shared_, "a pass");
    for (const layer& l : layers_) {
      std::vector<product> of_layer;
      for (std::size_t j = 0; j < linears; ++j) {
        const linear_shape w = shapes_of(s_)[j];
        product_request r;
        r.name = lab::text("the product of %s", linear_names[j]);
        r.type = P::type, r.result = CUDA_R_16BF;
        r.rows = tokens, r.cols = w.outputs, r.inner = w.inputs;
        r.x_row = w.inputs, r.result_row = w.outputs;
        r.x_descales = p.operand.descales(), r.w_descales = l.weights[j].descales();
        r.descale_each_row = shared_ == sharing::rows;
        r.fast_accumulation = fast_accumulation;
        of_layer.emplace_back(on_.library, r);
      }
      p.products.push_back(std::move(of_layer));
    }
    return p;
  }

  memory<value> empty_cache(const std::string& what) const {
    memory<value> cache(pages_.slots() * s_.kv_width(), what);
    check(cudaMemsetAsync(cache.data(), 0, cache.size() * sizeof(value), on_.on), what);
    return cache;
  }

  void norm(pass<P>& p, const bf16* x, const bf16* delta, const memory<bf16>& gain) const {
    add_and_norm<<<static_cast<unsigned>(p.tokens), threads_a_block, 0, on_.on>>>(x, delta, gain.data(), p.x.data(),
                                                                                  p.normed.data(), s_.hidden);
  }

  void multiply(pass<P>& p, const quantizing& how, std::size_t i, linear which, const memory<bf16>& x,
                const memory<bf16>& result) const {
    const auto j = static_cast<std::size_t>(which);
    p.operand.take(on_.on, how, lab::text("layer %zu input of %s", i, linear_names[j]), x.data(), p.tokens,
                   shapes_of(s_)[j].inputs);
    p.products[i][j].run(on_.library, on_.on, p.operand.values(), layers_[i].weights[j].values(), result.data());
  }

  // Queries and keys, which lie side by side.
  void rotate_heads(pass<P>& p) const {
    const std::size_t heads = s_.heads + s_.kv_heads, pairs = p.tokens * heads * s_.head_dim() / 2;
    rotate<<<blocks_for(pairs), threads_a_block, 0, on_.on>>>(p.qkv.data(), s_.qkv_width(), p.positions.data(),
                                                              model_.turns.data(), p.tokens, static_cast<int>(heads),
                                                              static_cast<int>(s_.head_dim()));
  }

  const octet::descale* cache_descales(std::size_t i, bool of_keys) const {
    return kv_descales_.size() == 0 ? nullptr : kv_descales_.data() + (2 * i + (of_keys ? 0 : 1)) * s_.kv_heads;
  }

  void append_to(pass<P>& p, std::size_t i, bool are_keys, const memory<value>& cache,
                 const watching<P>* watched) const {
    const new_tokens rows{p.qkv.data() + s_.hidden + (are_keys ? 0 : s_.kv_width()), p.tokens, s_.kv_width(),
                          s_.qkv_width(), s_.head_dim()};
    for (std::size_t j = 0; j < (watched != nullptr ? p.slots_there.size() : 1); ++j)
      check(append(rows, p.slots_there[j].data(), cache.data(), pages_.slots(), cache_descales(i, are_keys), on_.on),
            "the cache");
    if (watched != nullptr) watched->cache({i, are_keys, rows, p.slots, cache});
  }

  void attend_to_cache(pass<P>& p, std::size_t i) const {
    const std::size_t row = s_.kv_width();
    const decode_attention<value> step{p.qkv.data(),
                                       s_.qkv_width(),
                                       {layers_[i].keys.data(), page_size * row, row, cache_descales(i, true)},
                                       {layers_[i].values.data(), page_size * row, row, cache_descales(i, false)},
                                       p.table.data(),
                                       p.lengths.data(),
                                       static_cast<int>(pages_.pages_a_sequence()),
                                       static_cast<int>(s_.batch),
                                       static_cast<int>(s_.kv_heads),
                                       static_cast<int>(s_.group()),
                                       static_cast<int>(s_.head_dim()),
                                       p.attended.data()};
    check(attend(step, p.splits, on_.on), "the attention");
  }
};

}  // namespace toy
