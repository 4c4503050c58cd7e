// What a forward pass needs to know of a decoder beside its shape: norms, rotary positions, how far it sees.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lab/model_config.hpp"

namespace lab {

// Rotary position embedding: the angle of pair i at position p is p * frequency(i), see rope.hpp.
struct rope_config {
  enum class kind { plain, linear, llama3 } kind = kind::plain;
  double theta = 10000;
  double factor = 1;                                                                    // linear, llama3
  double low_frequency_factor = 1, high_frequency_factor = 4, original_context = 8192;  // llama3
};

struct transformer_config {
  model_shape shape;
  double norm_epsilon = 1e-5;
  rope_config rope;
  std::uint64_t sliding_window = 0;  // 0: every position sees all before it
};

// Newer files hold everything in rope_parameters; older ones theta beside rope_scaling.
inline rope_config read_rope(const std::string& path, const config_fields& fields) {
  rope_config rope;
  rope.theta = fields.number("rope_theta", rope.theta);
  const char* const object = fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!fields.has(object)) return rope;
  const config_fields scaling = fields.inside(object);
  rope.theta = scaling.number("rope_theta", rope.theta);
  const std::string type = scaling.has("rope_type") ? scaling.word("rope_type") : scaling.word("type");
  if (type == "linear") {
    rope.kind = rope_config::kind::linear;
    rope.factor = scaling.number("factor");
  } else if (type == "llama3") {
    rope.kind = rope_config::kind::llama3;
    rope.factor = scaling.number("factor");
    rope.low_frequency_factor = scaling.number("low_freq_factor");
    rope.high_frequency_factor = scaling.number("high_freq_factor");
    rope.original_context = scaling.number("original_max_position_embeddings");
    if (!(rope.high_frequency_factor > rope.low_frequency_factor))
      throw failure(path + ": " + object + ": high_freq_factor is not above low_freq_factor");
  } else if (type != "default") {
    throw failure(path + ": " + object + " has rope_type '" + type + "'; known are default, linear and llama3");
  }
  return rope;
}

// Llama, Mistral, Qwen2 and Qwen3; anything else is a failure.
inline transformer_config read_transformer_config(const std::string& path) {
  const nlohmann::json root = read_json_object(path);
  const config_fields fields(path, root);
  const std::string type = fields.word("model_type");
  if (type != "llama" && type != "mistral" && type != "qwen2" && type != "qwen3")
    throw failure(path + ": model_type " + (type.empty() ? "is missing" : "'" + type + "' is unknown") +
                  "; known are llama, mistral, qwen2 and qwen3");
  transformer_config c;
  c.shape = read_model_config(path);
  c.norm_epsilon = fields.number("rms_norm_eps", 1e-6);
  c.rope = read_rope(path, fields);
  const std::string activation = fields.word("hidden_act");
  if (!activation.empty() && activation != "silu")
    throw failure(path + ": hidden_act is '" + activation + "'; known is silu");
  if (fields.number("partial_rotary_factor", 1) != 1)
    throw failure(path + ": partial_rotary_factor is not 1: heads that are rotated in part are unknown");
  if (c.shape.head_dim % 2 != 0)
    throw failure(path + ": head_dim " + std::to_string(c.shape.head_dim) +
                  " is odd, so that it has no pairs to rotate");
  // Mistral has a window unless the file says null; Qwen has a switch for it, which is off by default.
  if (type == "mistral" && !root.contains("sliding_window")) c.sliding_window = 4096;
  const bool windowed = type == "mistral" || (type != "llama" && fields.flag("use_sliding_window", false));
  if (windowed && fields.has("sliding_window")) c.sliding_window = fields.count("sliding_window");
  return c;
}

}  // namespace lab
