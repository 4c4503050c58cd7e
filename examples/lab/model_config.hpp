// The shape of a transformer, from the config.json that Hugging Face models carry.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json_file.hpp"
#include "program.hpp"
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

// Reads fields of one JSON object; every complaint names the file and the field.
class config_fields {
 public:
  config_fields(const std::string& path, const nlohmann::json& object) : path_(path), object_(object) {}

  bool has(const char* field) const { return object_.contains(field) && !object_.at(field).is_null(); }

  std::uint64_t count(const char* field) const {
    if (!has(field)) throw failure(path_ + ": " + field + " is missing");
    const nlohmann::json& value = object_.at(field);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 || value.get<std::uint64_t>() > 0x7FFFFFFF)
      throw failure(path_ + ": " + field + " is " + brief(value) + ", no whole number from 1 to 2147483647");
    return value.get<std::uint64_t>();
  }
  std::uint64_t count(const char* field, std::uint64_t otherwise) const {
    return has(field) ? count(field) : otherwise;
  }

  bool flag(const char* field, bool otherwise) const {
    if (!has(field)) return otherwise;
    if (!object_.at(field).is_boolean())
      throw failure(path_ + ": " + field + " is " + brief(object_.at(field)) + ", neither true nor false");
    return object_.at(field).get<bool>();
  }

  double number(const char* field) const {
    if (!has(field)) throw failure(path_ + ": " + field + " is missing");
    const nlohmann::json& value = object_.at(field);
    if (!value.is_number() || !(value.get<double>() > 0))
      throw failure(path_ + ": " + field + " is " + brief(value) + ", no number above zero");
    return value.get<double>();
  }
  double number(const char* field, double otherwise) const { return has(field) ? number(field) : otherwise; }

  // The fields of an object inside this one.
  config_fields inside(const char* field) const {
    if (!object_.at(field).is_object())
      throw failure(path_ + ": " + field + " is " + brief(object_.at(field)) + ", no object");
    return {path_, object_.at(field)};
  }

  std::string word(const char* field) const {
    if (!has(field)) return {};
    if (!object_.at(field).is_string())
      throw failure(path_ + ": " + field + " is " + brief(object_.at(field)) + ", no string");
    return object_.at(field).get<std::string>();
  }

  // Refuses a model that this program would count wrongly.
  void refuse(const char* field, const char* what) const {
    if (!has(field)) return;
    const nlohmann::json& value = object_.at(field);
    if (value.is_number() && value.get<double>() <= 1) return;
    throw failure(path_ + ": " + field + " says that this is " + what + ", which is not counted here");
  }

 private:
  static std::string brief(const nlohmann::json& value) {
    if (value.is_structured()) return value.is_array() ? "a list" : "an object";
    const std::string dump = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    return dump.size() <= 40 ? dump : dump.substr(0, 37) + "...";
  }

  const std::string& path_;
  const nlohmann::json& object_;
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
