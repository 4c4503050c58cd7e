// Products of activations with weights: Eigen's, in blocks of rows and outputs that threads share.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lab/parallel.hpp"
#include "tensor.hpp"
#include "transformer.hpp"

namespace lab {

// out = in * weight^T + bias. in: [rows, inputs]; out: [rows, outputs].
struct product {
  const tensor& in;
  const linear& by;
  tensor& out;
};

// Several at once, so that small ones fill the threads together. The blocks depend on the sizes alone.
inline void multiply(const std::vector<product>& products) {
  constexpr std::size_t rows_a_block = 512, outputs_a_block = 192;
  struct block {
    const product* p;
    std::size_t row, output;
  };
  std::vector<block> blocks;
  for (const product& p : products) {
    p.out.resize(p.in.rows(), p.by.weight->rows());
    for (std::size_t o = 0; o < cols(p.out); o += outputs_a_block)
      for (std::size_t r = 0; r < rows(p.out); r += rows_a_block) blocks.push_back({&p, r, o});
  }
  for_each_index(blocks.size(), [&](std::size_t i) {
    const auto [p, r, o] = blocks[i];
    const Eigen::Index height = index(std::min(rows_a_block, rows(p->out) - r));
    const Eigen::Index width = index(std::min(outputs_a_block, cols(p->out) - o));
    auto out = p->out.block(index(r), index(o), height, width);
    out.noalias() = p->in.middleRows(index(r), height) * p->by.weight->middleRows(index(o), width).transpose();
    if (p->by.bias.size() != 0) out.rowwise() += p->by.bias.segment(index(o), width);
  });
}

}  // namespace lab
