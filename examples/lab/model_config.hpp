// The shape of a transformer, from the config.json that Hugging Face models carry.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "json_file.hpp"
#include "text.hpp"

namespace lab {

// A decoder of equal layers: attention with grouped heads, and a gated MLP of three matrices (or one of two).
struct model_shape {
  std::string name;
  std::uint64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, vocabulary = 0;
  std::uint64_t longest_context = 0;  // 0 where the file does not say
  bool tied_embeddings = false;       // the output head is the embedding table
  bool gated_mlp = true;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool head_norms = false;            // a norm over each head's query and key
  std::uint64_t norms_per_layer = 2;  // of `hidden` values each
  std::vector<std::string> notes;     // what the reader should know about how this was counted
};

inline model_shape llama_3_8b() {
  model_shape m;
  m.name = "Llama-3-8B";
  m.layers = 32, m.hidden = 4096, m.heads = 32, m.kv_heads = 8, m.head_dim = 128;
  m.intermediate = 14336, m.vocabulary = 128256, m.longest_context = 8192;
  return m;
}

// The fields of a config.json, or of an object inside it, that may be left out: null is as good as missing.
class config_fields {
 public:
  config_fields(const std::string& path, const nlohmann::json& object) : fields_(path, object) {}
  explicit config_fields(json_field fields) : fields_(std::move(fields)) {}

  bool has(const char* field) const { return !fields_[field].missing(); }

  std::uint64_t count(const char* field) const { return static_cast<std::uint64_t>(fields_[field].count(1)); }
  std::uint64_t count(const char* field, std::uint64_t otherwise) const {
    return has(field) ? count(field) : otherwise;
  }
  bool flag(const char* field, bool otherwise) const { return fields_[field].flag(otherwise); }
  double number(const char* field) const { return fields_[field].number(); }
  double number(const char* field, double otherwise) const { return has(field) ? number(field) : otherwise; }
  std::string word(const char* field) const { return has(field) ? fields_[field].text() : std::string(); }

  config_fields inside(const char* field) const {
    fields_[field].object();
    return config_fields(fields_[field]);
  }

  // Refuses a model that this program would count wrongly.
  void refuse(const char* field, const char* what) const {
    const json_field found = fields_[field];
    if (found.missing() || (found.value().is_number() && found.value().get<double>() <= 1)) return;
    throw failure(found.name() + " says that this is " + what + ", which is not counted here");
  }

 private:
  json_field fields_;
};

inline model_shape read_model_config(const std::string& path) {
  const nlohmann::json root = read_json_object(path);
  const bool nested =
      !root.contains("hidden_size") && root.contains("text_config") && root.at("text_config").is_object();
  const config_fields fields(path, nested ? root.at("text_config") : root);

  model_shape m;
  if (nested)
    m.notes.push_back("the language model of a multimodal one: its text_config is counted, no image or sound part");
  for (const char* field : {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"})
    fields.refuse(field, "a mixture of experts");
  fields.refuse("kv_lora_rank", "a model with latent attention");
  fields.refuse("num_kv_shared_layers", "a model whose layers share keys and values");
  fields.refuse("block_configs", "a model of unequal layers");
  for (const char* field : {"ssm_cfg", "mamba_d_state", "linear_num_key_heads"})
    fields.refuse(field, "a model with state-space or linear-attention layers");

  const std::string type = fields.word("model_type");
  m.name = type.empty() ? path : type;
  m.layers = fields.count("num_hidden_layers");
  m.hidden = fields.count("hidden_size");
  m.heads = fields.count("num_attention_heads");
  m.kv_heads = fields.count("num_key_value_heads", m.heads);
  m.intermediate = fields.count("intermediate_size");
  m.vocabulary = fields.count("vocab_size");
  m.longest_context = fields.count("max_position_embeddings", 0);
  if (fields.has("head_dim")) {
    m.head_dim = fields.count("head_dim");
  } else {
    if (m.hidden % m.heads != 0)
      throw failure(path + ": head_dim is missing, and hidden_size " + std::to_string(m.hidden) +
                    " is no multiple of " + "num_attention_heads " + std::to_string(m.heads));
    m.head_dim = m.hidden / m.heads;
  }
  if (m.kv_heads > m.heads || m.heads % m.kv_heads != 0)
    throw failure(path + ": num_key_value_heads " + std::to_string(m.kv_heads) + " does not divide " +
                  "num_attention_heads " + std::to_string(m.heads));

  // What the file leaves to the model's code.
  const auto is = [&](std::initializer_list<const char*> types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  const bool gemma = is({"gemma", "gemma2", "gemma3", "gemma3_text"});
  m.tied_embeddings = fields.flag("tie_word_embeddings", gemma);
  if (nested && !fields.has("tie_word_embeddings"))
    m.tied_embeddings = config_fields(path, root).flag("tie_word_embeddings", gemma);
  const bool all_biases = is({"phi", "gpt_neox", "starcoder2"});
  m.gated_mlp = !all_biases && !is({"nemotron"});
  m.qkv_bias = fields.flag("attention_bias", all_biases || is({"qwen2", "qwen2_vl", "qwen2_5_vl"}));
  m.output_bias = all_biases || (is({"llama", "granite", "cohere", "qwen3"}) && m.qkv_bias);
  m.mlp_bias = fields.flag("mlp_bias", all_biases);
  m.head_norms = is({"qwen3", "gemma3", "gemma3_text"});
  if (is({"gemma2", "gemma3", "gemma3_text"})) m.norms_per_layer = 4;
  if (!gemma && !all_biases &&
      !is({"llama", "mistral", "qwen2", "qwen2_vl", "qwen2_5_vl", "qwen3", "phi3", "granite", "nemotron", "smollm3"}))
    m.notes.push_back("model_type " + (type.empty() ? "is missing" : "'" + type + "' is not known here") +
                      ": counted like a Llama, with a gated MLP of three matrices");
  const bool window_used =
      fields.has("use_sliding_window") ? fields.flag("use_sliding_window", false) : fields.has("sliding_window");
  if (window_used && fields.has("sliding_window"))
    m.notes.push_back("layers with a sliding window of " + counted(fields.count("sliding_window"), "token") +
                      " may keep no more than those: the KV cache is counted in full");
  return m;
}

}  // namespace lab
