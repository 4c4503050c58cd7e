// The keys and values of the positions that a sequence has passed.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tensor.hpp"

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

}  // namespace lab
