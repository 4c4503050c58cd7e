// The places of a forward pass where values may be rounded, and what does it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "octet/matrix.hpp"

namespace lab {

// Where values may be rounded: the inputs of the linears, what enters the cache, the softmax, the head's input.
enum class site { qkv_input, o_input, gate_up_input, down_input, keys, values, head_input, softmax };
inline constexpr std::size_t sites = 8;
inline constexpr const char* site_names[sites] = {"q/k/v input", "o input", "gate/up input", "down input",
                                                  "K",           "V",       "head input",    "softmax"};

// How a recipe treats keys.
struct key_treatment {
  bool before_rope = false;  // they are rounded before they are rotated, else after
  bool centred = false;      // the mean of each channel, over the first pass of a sequence, is taken from them
};

// What happens to values on their way. This one changes nothing.
class treatment {
 public:
  virtual ~treatment() = default;

  // Called for one sequence's rows [tokens, features] of one pass at a time; of the softmax, for a block of queries of
  // one head [queries, keys]. Several threads may call at once.
  virtual void round(site, std::size_t /*layer*/, octet::matrix_view<float>) {}

  key_treatment keys;
  bool softmax_before_division = false;  // what is rounded there: see attend
  bool residual_bf16 = false;            // the sum that runs through the layers is kept in bfloat16
};

}  // namespace lab
