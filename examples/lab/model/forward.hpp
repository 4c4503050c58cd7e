// The forward pass of a decoder-only transformer in float32, with the places marked where a recipe rounds.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention.hpp"
#include "kv_cache.hpp"
#include "lab/parallel.hpp"
#include "octet/convert.hpp"
#include "product.hpp"
#include "rope.hpp"
#include "tensor.hpp"
#include "transformer.hpp"
#include "treatment.hpp"

namespace lab {

// New tokens of one sequence, behind those that its cache holds.
struct passage {
  const std::int32_t* tokens;
  std::size_t count;
  kv_cache* cache;
};

// One forward pass over the passages, which share the products and nothing else.
class forward_pass {
 public:
  forward_pass(const transformer& model, treatment& how, const std::vector<passage>& passages)
      : model_(model), shape_(model.config.shape), how_(how) {
    const std::vector<float> frequencies = rope_frequencies(model.config.rope, shape_.head_dim);
    std::size_t first_row = 0;
    for (const passage& p : passages) {
      runs_.push_back({p, first_row, rope_table(frequencies, p.cache->length, p.count)});
      p.cache->reserve(model.layers.size(), p.cache->length + p.count, shape_.kv_heads * shape_.head_dim);
      first_row += p.count;
      for (std::size_t i = 0; i < p.count; i += queries_a_block) blocks_.push_back({runs_.size() - 1, i});
    }
    stream_.resize(index(first_row), index(shape_.hidden));
    for (const run& r : runs_)
      for (std::size_t i = 0; i < r.count; ++i) stream_.row(index(r.row + i)) = model.embedding->row(r.tokens[i]);
    if (how.residual_bf16) add_to_stream(tensor::Zero(stream_.rows(), stream_.cols()));
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      attention(i, model.layers[i]);
      mlp(i, model.layers[i]);
    }
    normalize(model.final_norm, stream_, normed_);
    round_all(site::head_input, model.layers.size(), normed_);
    for (const passage& p : passages) p.cache->length += p.count;
  }

  // What the head takes: a row of hidden values for each token.
  tensor take_hidden() { return std::move(normed_); }

 private:
  struct run : passage {
    std::size_t row;
    rope_table rope;
    run(const passage& p, std::size_t first_row, rope_table table)
        : passage(p), row(first_row), rope(std::move(table)) {}
    octet::matrix_view<float> of(tensor& t) const { return view(t).row_range(row, count); }
  };
  struct query_block {
    std::size_t run, first;
  };
  static constexpr std::size_t rows_a_slice = 16;

  // x / sqrt(mean of x^2 + epsilon) * weight for each group of weight.size() values in each row.
  void normalize(const row_vector& weight, const tensor& in, tensor& out) const {
    out.resize(in.rows(), in.cols());
    for_each_slice(rows(in), rows_a_slice, [&](std::size_t first, std::size_t last) {
      const Eigen::Index width = weight.size();
      for (Eigen::Index r = index(first); r < index(last); ++r)
        for (Eigen::Index c = 0; c < in.cols(); c += width) {
          const auto x = in.row(r).segment(c, width);
          const float mean = x.squaredNorm() / static_cast<float>(width);
          const float factor = 1 / std::sqrt(mean + static_cast<float>(model_.config.norm_epsilon));
          out.row(r).segment(c, width) = (x * factor).cwiseProduct(weight);
        }
    });
  }

  void round_all(site where, std::size_t layer, tensor& t) {
    for_each_index(runs_.size(), [&](std::size_t i) { how_.round(where, layer, runs_[i].of(t)); });
  }

  void add_to_stream(const tensor& added) {
    for_each_slice(rows(stream_), rows_a_slice, [&](std::size_t first, std::size_t last) {
      const Eigen::Index r = index(first), n = index(last - first);
      stream_.middleRows(r, n) += added.middleRows(r, n);
      if (!how_.residual_bf16) return;
      for (float& x : stream_.middleRows(r, n).reshaped()) x = static_cast<float>(octet::bfloat16(x));
    });
  }

  void rotate(const run& r, octet::matrix_view<float> m, std::size_t heads) const {
    for_each_slice(m.rows, rows_a_slice, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) r.rope.rotate(m.row(i), heads, i);
    });
  }

  // Keys and values as attention is to read them, and into the cache.
  void store(std::size_t layer, const run& r) {
    const octet::matrix_view<float> keys = r.of(keys_), values = r.of(values_);
    kv_cache::layer& cache = r.cache->layers[layer];
    treat_keys(
        keys, how_.keys, r.cache->length == 0, cache.key_centre,
        [&](octet::matrix_view<float> m) { rotate(r, m, shape_.kv_heads); },
        [&](octet::matrix_view<float> m) { how_.round(site::keys, layer, m); });
    how_.round(site::values, layer, values);
    cache.keys.middleRows(index(r.cache->length), index(r.count)) = part(keys);
    cache.values.middleRows(index(r.cache->length), index(r.count)) = part(values);
  }

  void attention(std::size_t layer, const transformer_layer& w) {
    normalize(w.attention_norm, stream_, normed_);
    round_all(site::qkv_input, layer, normed_);
    multiply({{normed_, w.at(projection::q), queries_},
              {normed_, w.at(projection::k), keys_},
              {normed_, w.at(projection::v), values_}});
    if (w.query_norm.size() != 0) {
      normalize(w.query_norm, queries_, queries_);
      normalize(w.key_norm, keys_, keys_);
    }
    for_each_index(runs_.size(), [&](std::size_t i) {
      rotate(runs_[i], runs_[i].of(queries_), shape_.heads);
      store(layer, runs_[i]);
    });
    attended_.resize(queries_.rows(), queries_.cols());
    for_each_index(blocks_.size() * shape_.heads, [&](std::size_t i) {
      const std::size_t first = blocks_[i / shape_.heads].first;
      const run& r = runs_[blocks_[i / shape_.heads].run];
      const std::size_t head = i % shape_.heads, count = std::min(queries_a_block, r.count - first);
      const auto of_head = [&](tensor& t) {
        return column_range(view(t).row_range(r.row + first, count), head * shape_.head_dim, shape_.head_dim);
      };
      attend(shape_, r.cache->layers[layer], {of_head(queries_), of_head(attended_), head, r.cache->length + first},
             how_.softmax_before_division,
             [&](octet::matrix_view<float> weights) { how_.round(site::softmax, layer, weights); });
    });
    round_all(site::o_input, layer, attended_);
    multiply({{attended_, w.at(projection::o), added_}});
    add_to_stream(added_);
  }

  void mlp(std::size_t layer, const transformer_layer& w) {
    normalize(w.mlp_norm, stream_, normed_);
    round_all(site::gate_up_input, layer, normed_);
    multiply({{normed_, w.at(projection::gate), gate_}, {normed_, w.at(projection::up), up_}});
    for_each_slice(rows(gate_), rows_a_slice, [&](std::size_t first, std::size_t last) {
      auto gate = gate_.middleRows(index(first), index(last - first)).array();
      gate = gate / (1 + (-gate).exp()) * up_.middleRows(index(first), index(last - first)).array();
    });
    round_all(site::down_input, layer, gate_);
    multiply({{gate_, w.at(projection::down), added_}});
    add_to_stream(added_);
  }

  const transformer& model_;
  const model_shape& shape_;
  treatment& how_;
  std::vector<run> runs_;
  std::vector<query_block> blocks_;
  tensor stream_, normed_, queries_, keys_, values_, attended_, gate_, up_, added_;
};

// The hidden values of every token of the passages, in their order, ready for the head.
inline tensor forward(const transformer& model, treatment& how, const std::vector<passage>& passages) {
  return forward_pass(model, how, passages).take_hidden();
}

}  // namespace lab
