// The weights of a decoder-only transformer, as a forward pass takes them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tensor.hpp"
#include "transformer_config.hpp"

namespace lab {

// y = W x + b. The weight [outputs, inputs] is shared by the decoders that do not change it; no bias: empty.
struct linear {
  std::shared_ptr<const tensor> weight;
  row_vector bias;
};

// The seven linears of a layer, in the order of the forward pass.
enum class projection { q, k, v, o, gate, up, down };
inline constexpr std::size_t projections = 7;
inline constexpr const char* projection_names[projections] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                              "gate_proj", "up_proj", "down_proj"};

struct transformer_layer {
  row_vector attention_norm, mlp_norm;
  row_vector query_norm, key_norm;  // of head_dim values; empty where the model has none
  linear linears[projections];

  const linear& at(projection p) const { return linears[static_cast<std::size_t>(p)]; }
  linear& at(projection p) { return linears[static_cast<std::size_t>(p)]; }
};

struct transformer {
  transformer_config config;
  std::shared_ptr<const tensor> embedding;  // [vocabulary, hidden]
  std::shared_ptr<const tensor> head;       // [vocabulary, hidden]; the embedding itself where they are tied
  row_vector final_norm;
  std::vector<transformer_layer> layers;
};

// The shape [outputs, inputs] of a layer's linear.
struct linear_shape {
  std::uint64_t outputs, inputs;
  bool bias;
};
inline linear_shape shape_of(const model_shape& m, projection p) {
  const std::uint64_t queries = m.heads * m.head_dim, keys = m.kv_heads * m.head_dim;
  switch (p) {
    case projection::q:
      return {queries, m.hidden, m.qkv_bias};
    case projection::k:
    case projection::v:
      return {keys, m.hidden, m.qkv_bias};
    case projection::o:
      return {m.hidden, queries, m.output_bias};
    case projection::gate:
    case projection::up:
      return {m.intermediate, m.hidden, m.mlp_bias};
    default:
      return {m.hidden, m.intermediate, m.mlp_bias};
  }
}

}  // namespace lab
