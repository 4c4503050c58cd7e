// Carries a recipe out: rounds a model's weights once, and the values of its forward passes as they come.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/model/forward.hpp"
#include "lab/model/transformer.hpp"
#include "lab/parallel.hpp"
#include "observations.hpp"
#include "recipe_names.hpp"
#include "rounding.hpp"

namespace lab {

// How a part rounds at its place, but for calibrated scales.
inline rounding rounding_of(const recipe_part& part, unsigned place, std::size_t head_dim, int eighths) {
  const bool cached = place == recipe_words::k || place == recipe_words::v;
  if (cached && part.shared == sharing::group32 && head_dim % 32 != 0)
    throw failure("groups of 32 would reach across KV heads of " + std::to_string(head_dim) + " values");
  rounding r;
  r.format = part.format;
  r.shape = tile_of(part, place, head_dim);
  r.source = part.scales;
  // The softmax's numerators are at most 1, so that their scale needs no search.
  if (place == recipe_words::p && r.source == scale_source::found && part.shared == sharing::whole) {
    r.source = scale_source::constant;
    r.descale = part.format == number_format::int8 ? 1 / int8::largest : 1.0f / 256;
  }
  r.eighths = eighths;
  return r;
}

// The decoder with the weights rounded that the recipe names; the others are shared with `model`.
inline transformer round_weights(const transformer& model, const recipe& recipe, int eighths, losses& lost) {
  transformer rounded = model;
  if (!recipe.weights) return rounded;
  const rounding how = rounding_of(*recipe.weights, recipe_words::w, model.config.shape.head_dim, eighths);
  std::vector<std::shared_ptr<const tensor>*> weights;
  for (transformer_layer& layer : rounded.layers)
    for (linear& l : layer.linears) weights.push_back(&l.weight);
  if (recipe.head) weights.push_back(&rounded.head);
  std::vector<losses> lost_by(weights.size());
  for_each_index(weights.size(), [&](std::size_t i) {
    const tensor& from = **weights[i];
    auto to = std::make_shared<tensor>(from.rows(), from.cols());
    lost_by[i] = round_values(view(from), view(*to), how);
    *weights[i] = std::move(to);
  });
  for (const losses& l : lost_by) lost += l;
  return rounded;
}

class recipe_treatment : public treatment {
 public:
  // calibration: what was observed with the same treatment of keys; null where nothing is static.
  recipe_treatment(const recipe& recipe, const transformer_config& config, int eighths, const observations* calibration)
      : calibration_(calibration) {
    using namespace recipe_words;
    const std::size_t head_dim = config.shape.head_dim;
    const auto set = [&](site where, const std::optional<recipe_part>& part, unsigned place) {
      if (part) how_[static_cast<std::size_t>(where)] = rounding_of(*part, place, head_dim, eighths);
    };
    for (const site where : {site::qkv_input, site::o_input, site::gate_up_input, site::down_input})
      set(where, recipe.activations, a);
    if (recipe.head) set(site::head_input, recipe.activations, a);
    set(site::keys, recipe.keys, k);
    set(site::values, recipe.values, v);
    set(site::softmax, recipe.softmax, p);
    keys = recipe.of_keys();
    softmax_before_division =
        recipe.softmax && recipe.softmax->scales == scale_source::found && recipe.softmax->shared == sharing::whole;
    residual_bf16 = recipe.residual_bf16;
  }

  void round(site where, std::size_t layer, octet::matrix_view<float> values) override {
    const std::size_t i = static_cast<std::size_t>(where);
    if (!how_[i]) return;
    losses l;
    if (how_[i]->source == scale_source::given) {
      rounding how = *how_[i];
      how.amaxes = calibration_->amaxes(where, layer, how.shape);
      l = round_values(values, values, how);
    } else {
      l = round_values(values, values, *how_[i]);
    }
    // Each query of a block sees one position more than the one before it, the last one all; the others are zeros that
    // were never computed.
    if (where == site::softmax) l.count -= values.rows * (values.rows - 1) / 2;
    const std::lock_guard<std::mutex> lock(adding_);
    lost_[i] += l;
  }

  const losses& lost(site where) const { return lost_[static_cast<std::size_t>(where)]; }

 private:
  const observations* calibration_;
  std::array<std::optional<rounding>, sites> how_;
  std::array<losses, sites> lost_;
  std::mutex adding_;
};

}  // namespace lab
