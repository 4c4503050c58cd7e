// One attention layer of a single head, drawn at random but for one loud channel of its keys: what recipes cost there.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/draws.hpp"
#include "lab/model/attention.hpp"
#include "lab/model/kv_cache.hpp"
#include "lab/model/rope.hpp"
#include "lab/model/tensor.hpp"
#include "lab/parallel.hpp"
#include "lab/recipes/recipe_names.hpp"
#include "lab/recipes/recipe_treatment.hpp"
#include "lab/recipes/rounding.hpp"

namespace lab {

// Root of the sum of squared differences over that of `right`.
inline double relative_error(const tensor& is, const tensor& right) {
  return (is - right).cast<double>().norm() / right.cast<double>().norm();
}

// A position a row, before rotation; normal values of mean 0 and deviation 1, and the same numbers on every machine.
struct drawn_head {
  tensor queries, keys, values;

  drawn_head(std::uint64_t seed, std::size_t positions, std::size_t head_dim) {
    tensor* const all[] = {&queries, &keys, &values};
    for (std::size_t i = 0; i < 3; ++i) {
      const std::vector<float> drawn = to_floats(normals({seed, i}, positions * head_dim));
      *all[i] =
          const_tensor_part(drawn.data(), index(positions), index(head_dim), Eigen::OuterStride<>(index(head_dim)));
    }
  }
};

// What becomes of one channel: key * times + mean, query * query_times. RoPE turns it with a partner, whose query is
// multiplied by partner_query_times.
struct loud_channel {
  double times = 1, mean = 0, query_times = 1, partner_query_times = 1;
};

class constructed_layer {
 public:
  // The last `queries` positions ask; each sees the positions up to its own.
  constructed_layer(const drawn_head& drawn, const loud_channel& loud, std::size_t queries)
      : keys_(drawn.keys),
        values_(drawn.values),
        queries_(drawn.queries),
        rope_(rope_frequencies({}, cols(keys_)), 0, rows(keys_)),
        asking_(queries) {
    shape_.heads = shape_.kv_heads = 1;
    shape_.head_dim = cols(keys_);
    const Eigen::Index c = index(channel(cols(keys_)));
    keys_.col(c) = (keys_.col(c).cast<double>() * loud.times).array().cast<float>() + static_cast<float>(loud.mean);
    queries_.col(c) *= static_cast<float>(loud.query_times);
    queries_.col(c + keys_.cols() / 2) *= static_cast<float>(loud.partner_query_times);
    rotate(queries_);
    right_ = attended(cached({}, 0));
  }

  // The loud channel: of the pair 15/16 of the way to the slowest, which RoPE turns little over a thousand positions.
  static std::size_t channel(std::size_t head_dim) { return head_dim / 2 * 15 / 16; }

  // Of the attention's output, when keys and values go through a cache of that recipe. Descales times 2^(eighths / 8).
  double attention_error(const recipe& r, int eighths = 0) const {
    return relative_error(attended(cached(r, eighths)), right_);
  }

  // Of the other channels as the cache holds them, where keys are rounded before their rotation.
  double stored_error(const recipe_part& part) const {
    tensor stored = keys_, right = keys_;
    round_values(view(keys_), view(stored), rounding_of(part, recipe_words::k, shape_.head_dim, 0));
    const Eigen::Index c = index(channel(shape_.head_dim));
    stored.col(c).setZero();
    right.col(c).setZero();
    return relative_error(stored, right);
  }

 private:
  void rotate(tensor& t) const {
    for (std::size_t i = 0; i < rows(t); ++i) rope_.rotate(t.row(index(i)).data(), 1, i);
  }

  // Keys and values as attention reads them.
  kv_cache::layer cached(const recipe& r, int eighths) const {
    kv_cache::layer cache{keys_, values_, {}};
    const key_treatment how = r.of_keys();
    treat_keys(
        view(cache.keys), how, true, cache.key_centre, [&](octet::matrix_view<float>) { rotate(cache.keys); },
        [&](octet::matrix_view<float> m) {
          if (r.keys) round_values(m, m, rounding_of(*r.keys, recipe_words::k, shape_.head_dim, eighths));
        });
    if (r.values)
      round_values(view(cache.values), view(cache.values),
                   rounding_of(*r.values, recipe_words::v, shape_.head_dim, eighths));
    return cache;
  }

  tensor attended(const kv_cache::layer& cache) const {
    tensor out(index(asking_), keys_.cols());
    const std::size_t before = rows(keys_) - asking_;
    for_each_slice(asking_, queries_a_block, [&](std::size_t first, std::size_t last) {
      const std::size_t count = last - first;
      attend(shape_, cache,
             {view(queries_).row_range(before + first, count), view(out).row_range(first, count), 0, before + first},
             false, [](octet::matrix_view<float>) {});
    });
    return out;
  }

  tensor keys_, values_, queries_;  // the queries are rotated
  rope_table rope_;
  std::size_t asking_;
  model_shape shape_;
  tensor right_;  // the attention's output where nothing is rounded
};

}  // namespace lab
