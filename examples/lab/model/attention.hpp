// Causal attention with grouped heads over a cache of keys and values.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kv_cache.hpp"
#include "tensor.hpp"
#include "transformer_config.hpp"

namespace lab {

// Some queries of one head, and where they stand.
struct attention_block {
  octet::matrix_view<const float> queries;  // [count, head_dim]
  octet::matrix_view<float> out;            // [count, head_dim]
  std::size_t head, position;               // of the first query
};
inline constexpr std::size_t queries_a_block = 64;

// out = softmax(queries * keys^T / sqrt(head_dim)) * values, each query over the positions up to its own.
// round(matrix) is called on what multiplies the values: probabilities, or where `before_division` is set their
// numerators exp(score - the row's largest), which are divided by their unrounded sum afterwards.
template <class Round>
void attend(const model_shape& m, const kv_cache::layer& cache, const attention_block& b, bool before_division,
            const Round& round) {
  const std::size_t kv_head = b.head / (m.heads / m.kv_heads), count = b.queries.rows, keys = b.position + count;
  const auto of_head = [&](const tensor& t) {
    return t.block(0, index(kv_head * m.head_dim), index(keys), index(m.head_dim));
  };
  tensor weights(index(count), index(keys));
  weights.noalias() = part(b.queries) * of_head(cache.keys).transpose();
  const float scale = 1 / std::sqrt(static_cast<float>(m.head_dim));
  Eigen::Matrix<float, Eigen::Dynamic, 1> divisors(index(count));
  for (std::size_t i = 0; i < count; ++i) {
    auto row = weights.row(index(i)).array();
    const Eigen::Index seen = index(b.position + i + 1);
    auto scores = row.head(seen);
    scores = ((scores - scores.maxCoeff()) * scale).exp();
    row.tail(index(keys) - seen) = 0;
    const float sum = scores.sum();
    divisors(index(i)) = before_division ? sum : 1.0f;
    if (!before_division) scores /= sum;
  }
  round(view(weights));
  part(b.out).noalias() = weights * of_head(cache.values);
  if (before_division) part(b.out).array().colwise() /= divisors.array();
}

}  // namespace lab
