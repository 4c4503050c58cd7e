// The decoder that both runs share: its sizes, and weights drawn in bfloat16.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "draws.cuh"

namespace toy {

struct sizes {
  std::size_t layers, hidden, heads, kv_heads, ffn, batch, context, prompt;

  std::size_t head_dim() const { return hidden / heads; }
  std::size_t group() const { return heads / kv_heads; }
  std::size_t kv_width() const { return kv_heads * head_dim(); }
  std::size_t qkv_width() const { return hidden + 2 * kv_width(); }
};

// The four matrices of a layer, [outputs, inputs], in the order of the forward pass. Those that read the same are one.
enum class linear { qkv, out, gate_up, down };
constexpr std::size_t linears = 4;
inline constexpr const char* linear_names[linears] = {"qkv", "out", "gate_up", "down"};

struct linear_shape {
  std::size_t outputs, inputs;
};
inline std::array<linear_shape, linears> shapes_of(const sizes& s) {
  return {{{s.qkv_width(), s.hidden}, {s.hidden, s.hidden}, {2 * s.ffn, s.hidden}, {s.hidden, s.ffn}}};
}

struct model {
  struct layer {
    std::array<memory<bf16>, linears> weights;
    memory<bf16> attention_norm, mlp_norm;  // [hidden]
  };
  sizes shape;
  std::vector<layer> layers;
  memory<bf16> final_norm;
  memory<float2> turns;         // [context, head_dim / 2]: cosine and sine of each position's rotations
  memory<bf16> prompts, token;  // hidden states to begin with: [batch * prompt, hidden] and [batch, hidden]
};

// What tokens are turned by, computed in double.
inline std::vector<float2> rotations(std::size_t positions, std::size_t head_dim) {
  std::vector<float2> turns;
  for (std::size_t position = 0; position < positions; ++position)
    for (std::size_t i = 0; i < head_dim / 2; ++i) {
      const double angle = static_cast<double>(position) *
                           std::pow(500000.0, -2 * static_cast<double>(i) / static_cast<double>(head_dim));
      turns.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
    }
  return turns;
}

// Weights are normal, of deviation 1 / sqrt(inputs). What makes scales matter in trained models is here too: a few channels
// of the states are tens of times larger than the others (their norm's gain), some of each matrix's outputs are larger
// (among them channels of keys), and every output has a deviation of its own.
inline model draw_model(const stream& on, const sizes& s, std::uint64_t seed) {
  drawing draw(on, seed);
  model m;
  m.shape = s;
  const statistics_of_rows gains{1, 0.1f, 128, 80}, states{0, 1, 0, 1};
  for (std::size_t i = 0; i < s.layers; ++i) {
    model::layer layer;
    for (std::size_t j = 0; j < linears; ++j) {
      const linear_shape w = shapes_of(s)[j];
      const float deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(w.inputs)));
      layer.weights[j] = draw.rows(w.outputs, w.inputs, {0, deviation, 64, 4}, "the weights");
    }
    layer.attention_norm = draw.rows(s.hidden, 1, gains, "the norms");
    layer.mlp_norm = draw.rows(s.hidden, 1, gains, "the norms");
    m.layers.push_back(std::move(layer));
  }
  m.final_norm = draw.rows(s.hidden, 1, {1, 0.1f, 0, 1}, "the norms");
  m.prompts = draw.rows(s.batch * s.prompt, s.hidden, states, "the prompts");
  m.token = draw.rows(s.batch, s.hidden, states, "the new tokens");
  m.turns = on.upload(rotations(s.context, s.head_dim()), "the rotations");
  return m;
}

}  // namespace toy
