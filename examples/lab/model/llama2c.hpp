// Reads a decoder from a llama2.c checkpoint: seven numbers, then float32 weights in a fixed order.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "lab/mapped_file.hpp"
#include "lab/tensor_file.hpp"
#include "tensor.hpp"
#include "transformer.hpp"

namespace lab {

// The weights of a mapped file, taken in its order.
class llama2c_weights {
 public:
  explicit llama2c_weights(const mapped_file& file) : file_(file) {}

  std::uint64_t whole_number() {
    expect("the header", 4);
    std::uint32_t bits = 0;
    for (std::size_t i = 4; i-- > 0;) bits = bits << 8 | file_.data()[place_ + i];
    place_ += 4;
    return bits;
  }
  tensor matrix(const char* name, std::uint64_t rows, std::uint64_t cols) {
    expect(name, 4 * rows * cols);
    tensor t(index(rows), index(cols));
    widen<float>(file_.data() + place_, rows * cols, t.data());
    if (!t.array().isFinite().all()) throw failure(file_.path() + ": " + name + " holds NaN or infinity");
    place_ += 4 * rows * cols;
    return t;
  }
  void skip(const char* name, std::uint64_t count) {
    expect(name, 4 * count);
    place_ += 4 * count;
  }
  void expect_end() const {
    if (place_ != file_.size())
      throw failure(file_.path() + ": holds " + counted(file_.size() - place_, "byte") + " behind the last weight");
  }

 private:
  void expect(const char* name, std::uint64_t bytes) const {
    if (file_.size() - place_ < bytes) throw failure(file_.path() + ": is cut off within " + name);
  }

  const mapped_file& file_;
  std::size_t place_ = 0;
};

// llama2.c turns neighbouring values of a head; the rows of each head are put in the order of rope.hpp, where value i is
// paired with i + head_dim / 2. Queries and keys in the same order have the same products.
inline tensor half_split_heads(const tensor& interleaved, std::uint64_t head_dim) {
  tensor split(interleaved.rows(), interleaved.cols());
  for (std::size_t r = 0; r < rows(interleaved); ++r) {
    const std::size_t head = r / head_dim, i = r % head_dim;
    split.row(index(head * head_dim + i % 2 * (head_dim / 2) + i / 2)) = interleaved.row(index(r));
  }
  return split;
}

inline transformer read_llama2c(const std::string& path) {
  const mapped_file file(path);
  llama2c_weights weights(file);
  transformer model;
  model_shape& m = model.config.shape;
  m.name = "llama2.c";
  m.hidden = weights.whole_number();
  m.intermediate = weights.whole_number();
  m.layers = weights.whole_number();
  m.heads = weights.whole_number();
  m.kv_heads = weights.whole_number();
  const std::uint64_t vocabulary = weights.whole_number();  // negative: the head is not tied
  m.tied_embeddings = vocabulary >> 31 == 0;
  m.vocabulary = m.tied_embeddings ? vocabulary : (std::uint64_t{1} << 32) - vocabulary;
  m.longest_context = weights.whole_number();
  for (const std::uint64_t n :
       {m.hidden, m.intermediate, m.layers, m.heads, m.kv_heads, m.vocabulary, m.longest_context})
    if (n == 0 || n > 0xFFFFFF)
      throw failure(path + ": is no llama2.c checkpoint: its header says " + std::to_string(n));
  if (m.hidden % m.heads != 0 || m.heads % m.kv_heads != 0 || m.hidden / m.heads % 2 != 0)
    throw failure(path + ": is no llama2.c checkpoint: " + std::to_string(m.heads) + " heads, " +
                  std::to_string(m.kv_heads) + " of keys, do not share " + std::to_string(m.hidden) + " values");
  m.head_dim = m.hidden / m.heads;

  if (m.layers > file.size() / (4 * m.hidden))
    throw failure(path + ": is cut off: " + counted(m.layers, "layer") + " do not fit");
  model.embedding = std::make_shared<tensor>(weights.matrix("the embedding", m.vocabulary, m.hidden));
  model.layers.resize(m.layers);
  const auto norms = [&](const char* name, row_vector transformer_layer::*norm) {
    for (transformer_layer& layer : model.layers) layer.*norm = weights.matrix(name, 1, m.hidden);
  };
  const auto linears = [&](projection p) {
    const linear_shape shape = shape_of(m, p);
    for (transformer_layer& layer : model.layers) {
      tensor w = weights.matrix(projection_names[static_cast<std::size_t>(p)], shape.outputs, shape.inputs);
      if (p == projection::q || p == projection::k) w = half_split_heads(w, m.head_dim);
      layer.at(p).weight = std::make_shared<tensor>(std::move(w));
    }
  };
  norms("the attention norms", &transformer_layer::attention_norm);
  for (const projection p : {projection::q, projection::k, projection::v, projection::o}) linears(p);
  norms("the MLP norms", &transformer_layer::mlp_norm);
  for (const projection p : {projection::gate, projection::down, projection::up}) linears(p);
  model.final_norm = weights.matrix("the final norm", 1, m.hidden);
  weights.skip("the rotation tables", m.longest_context * m.head_dim);
  model.head = m.tied_embeddings ? model.embedding
                                 : std::make_shared<tensor>(weights.matrix("the head", m.vocabulary, m.hidden));
  weights.expect_end();
  return model;
}

}  // namespace lab
