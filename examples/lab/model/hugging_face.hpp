// Reads a decoder from a Hugging Face folder: config.json, and model.safetensors or its shards.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstring>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lab/tensor_file.hpp"
#include "safetensors.hpp"
#include "tensor.hpp"
#include "transformer.hpp"

namespace lab {

// All tensors of a model's files by name. Each is to be taken once, with the shape that the model's config asks for.
class checkpoint {
 public:
  explicit checkpoint(const std::string& folder) : folder_(folder) {
    const std::string whole = folder + "/model.safetensors", shards = folder + "/model.safetensors.index.json";
    if (std::filesystem::exists(shards) && !std::filesystem::exists(whole))
      open_shards(shards);
    else
      open(whole);
  }

  bool has(const std::string& name) const { return entries_.count(name) != 0; }

  // Widened to float; a failure names the file and the tensor.
  std::shared_ptr<const tensor> take(const std::string& name, const std::vector<std::uint64_t>& shape) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) throw failure(folder_ + ": tensor " + name + " is missing");
    const auto [file, stored] = found->second;
    const std::string where = file->path() + ": tensor " + name;
    if (stored->shape != shape)
      throw failure(where + " is " + shape_text(stored->shape) + "; config.json asks for " + shape_text(shape));
    const dtype& type = float_type(where, stored->type);
    const std::uint64_t columns = shape.back(), count = stored->count();
    auto values = std::make_shared<tensor>(index(count / columns), index(columns));
    type.widen(stored->bytes, count, values->data());
    if (!values->array().isFinite().all()) throw failure(where + " holds NaN or infinity");
    entries_.erase(found);
    return values;
  }
  row_vector take_vector(const std::string& name, std::uint64_t length) { return row_vector(*take(name, {length})); }

  // A tensor that newer files leave out because it is computed, or a copy of another: dropped if it is there.
  void drop(const std::string& name) { entries_.erase(name); }

  void expect_nothing_left() const {
    if (entries_.empty()) return;
    const auto& [name, place] = *entries_.begin();
    throw failure(place.first->path() + ": tensor " + name + " has no place in this model" +
                  (entries_.size() > 1 ? ", nor do " + std::to_string(entries_.size() - 1) + " more" : ""));
  }

 private:
  using entry = std::pair<const safetensors*, const stored_tensor*>;

  static const dtype& float_type(const std::string& where, const std::string& name) {
    static const std::map<std::string, const char*> names = {{"F32", "f32"}, {"BF16", "bf16"}, {"F16", "f16"}};
    const auto known = names.find(name);
    if (known == names.end()) throw failure(where + " is of " + name + "; known are F32, BF16 and F16");
    return dtype_named(known->second);
  }

  const safetensors& open(const std::string& path) {
    files_.emplace_back(path);
    for (const auto& [name, stored] : files_.back().tensors())
      if (!entries_.emplace(name, entry{&files_.back(), &stored}).second)
        throw failure(path + ": tensor " + name + " is in another file too");
    return files_.back();
  }

  void open_shards(const std::string& path) {
    const nlohmann::json root = read_json_object(path);
    if (!root.contains("weight_map") || !root.at("weight_map").is_object())
      throw failure(path + ": weight_map is missing");
    std::map<std::string, std::set<std::string>> names_of;
    for (const auto& [name, file] : root.at("weight_map").items()) {
      if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos ||
          file.get<std::string>().empty())
        throw failure(path + ": weight_map: " + name + " names no file of this folder");
      names_of[file.get<std::string>()].insert(name);
    }
    for (const auto& [file, names] : names_of) {
      const safetensors& shard = open(folder_ + "/" + file);
      for (const std::string& name : names)
        if (shard.tensors().count(name) == 0) throw failure(shard.path() + ": tensor " + name + " is missing");
      for (const auto& named : shard.tensors())
        if (names.count(named.first) == 0) throw failure(path + ": weight_map: " + named.first + " is missing");
    }
  }

  std::string folder_;
  std::list<safetensors> files_;
  std::map<std::string, entry> entries_;
};

inline transformer read_hugging_face(const std::string& folder) {
  transformer model;
  model.config = read_transformer_config(folder + "/config.json");
  const model_shape& m = model.config.shape;
  checkpoint file(folder);
  model.embedding = file.take("model.embed_tokens.weight", {m.vocabulary, m.hidden});
  for (std::uint64_t i = 0; i < m.layers; ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    transformer_layer layer;
    layer.attention_norm = file.take_vector(prefix + "input_layernorm.weight", m.hidden);
    layer.mlp_norm = file.take_vector(prefix + "post_attention_layernorm.weight", m.hidden);
    if (m.head_norms) {
      layer.query_norm = file.take_vector(prefix + "self_attn.q_norm.weight", m.head_dim);
      layer.key_norm = file.take_vector(prefix + "self_attn.k_norm.weight", m.head_dim);
    }
    for (std::size_t p = 0; p < projections; ++p) {
      const linear_shape shape = shape_of(m, static_cast<projection>(p));
      const std::string name = prefix + (p < 4 ? "self_attn." : "mlp.") + projection_names[p];
      layer.linears[p].weight = file.take(name + ".weight", {shape.outputs, shape.inputs});
      if (shape.bias) layer.linears[p].bias = file.take_vector(name + ".bias", shape.outputs);
    }
    file.drop(prefix + "self_attn.rotary_emb.inv_freq");
    model.layers.push_back(std::move(layer));
  }
  model.final_norm = file.take_vector("model.norm.weight", m.hidden);
  if (m.tied_embeddings)
    file.drop("lm_head.weight");
  else
    model.head = file.take("lm_head.weight", {m.vocabulary, m.hidden});
  if (m.tied_embeddings) model.head = model.embedding;
  file.expect_nothing_left();
  return model;
}

}  // namespace lab
