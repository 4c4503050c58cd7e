// The keys and values of the positions that a sequence has passed.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tensor.hpp"
#include "treatment.hpp"

namespace lab {

struct kv_cache {
  struct layer {
    tensor keys, values;    // [positions, kv heads * head_dim]; as attention reads them
    row_vector key_centre;  // what a recipe takes from every key; set by the first pass
  };
  std::size_t length = 0;  // positions held
  std::vector<layer> layers;

  // Room for `positions` in each of `layer_count` layers.
  void reserve(std::size_t layer_count, std::size_t positions, std::size_t width) {
    layers.resize(layer_count);
    for (layer& l : layers) {
      if (rows(l.keys) >= positions) continue;
      const std::size_t capacity = length == 0 ? positions : std::max(positions, 2 * length);
      l.keys.conservativeResize(index(capacity), index(width));
      l.values.conservativeResize(index(capacity), index(width));
    }
  }
};

// Each channel's mean, added up in the order of the rows, in float32 like all else.
inline row_vector mean_of_rows(const tensor_part& m) {
  row_vector sum = row_vector::Zero(m.cols());
  for (Eigen::Index r = 0; r < m.rows(); ++r) sum += m.row(r);
  return sum / static_cast<float>(m.rows());
}

// Makes of keys what attention reads of them. centre: taken from these keys if they are a sequence's first, else as it
// was then.
template <class Rotate, class Round>
void treat_keys(octet::matrix_view<float> keys, const key_treatment& how, bool first, row_vector& centre,
                const Rotate& rotate, const Round& round) {
  if (!how.before_rope) rotate(keys);
  if (how.centred) {
    if (first) centre = mean_of_rows(part(keys));
    part(keys).rowwise() -= centre;
  }
  round(keys);
  // Softmax does not see what all keys have in common; rotated by their positions, they no longer have it in common.
  if (how.centred && how.before_rope) part(keys).rowwise() += centre;
  if (how.before_rope) rotate(keys);
}

}  // namespace lab
