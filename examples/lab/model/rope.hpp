// Rotary position embedding: each pair of a head's values turned by an angle that grows with the position.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "octet/matrix.hpp"
#include "transformer_config.hpp"

namespace lab {

// Radians a position for each of the head_dim / 2 pairs.
inline std::vector<float> rope_frequencies(const rope_config& rope, std::size_t head_dim) {
  const double pi = std::acos(-1.0);
  std::vector<float> frequencies(head_dim / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    double f = std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    if (rope.kind == rope_config::kind::linear) f /= rope.factor;
    if (rope.kind == rope_config::kind::llama3) {
      // Slow pairs are slowed by the factor, fast ones are left, and between the two it goes over smoothly.
      const double turns = rope.original_context * f / (2 * pi);
      const double low = rope.low_frequency_factor, high = rope.high_frequency_factor;
      const double left = turns < low ? 0 : turns > high ? 1 : (turns - low) / (high - low);
      f = (1 - left) * f / rope.factor + left * f;
    }
    frequencies[i] = static_cast<float>(f);
  }
  return frequencies;
}

// Cosines and sines of the positions first to first + count - 1, head_dim / 2 of each a position.
class rope_table {
 public:
  rope_table(const std::vector<float>& frequencies, std::size_t first, std::size_t count)
      : pairs_(frequencies.size()), cosines_(count * pairs_), sines_(count * pairs_) {
    for (std::size_t p = 0; p < count; ++p)
      for (std::size_t i = 0; i < pairs_; ++i) {
        const float angle = static_cast<float>(first + p) * frequencies[i];
        cosines_[p * pairs_ + i] = std::cos(angle);
        sines_[p * pairs_ + i] = std::sin(angle);
      }
  }

  // Turns all heads of a row, which stands at the table's position p. Value i of a head is paired with i + head_dim / 2,
  // as Hugging Face has them.
  void rotate(float* row, std::size_t heads, std::size_t p) const {
    const float *const cosine = cosines_.data() + p * pairs_, *const sine = sines_.data() + p * pairs_;
    for (std::size_t h = 0; h < heads; ++h, row += 2 * pairs_)
      for (std::size_t i = 0; i < pairs_; ++i) {
        const float a = row[i], b = row[i + pairs_];
        row[i] = a * cosine[i] - b * sine[i];
        row[i + pairs_] = b * cosine[i] + a * sine[i];
      }
  }

 private:
  std::size_t pairs_;
  std::vector<float> cosines_, sines_;
};

}  // namespace lab
