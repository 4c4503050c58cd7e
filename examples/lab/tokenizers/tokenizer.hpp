// Text as tokens and back, by a tokenizer.json of Hugging Face or a tokenizer.bin of llama2.c.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hugging_face_tokenizer.hpp"
#include "lab/json_file.hpp"
#include "lab/whole_file.hpp"
#include "llama2c_tokenizer.hpp"
#include "unicode.hpp"

namespace lab {

class tokenizer {
 public:
  using kind = std::variant<hugging_face_tokenizer, llama2c_tokenizer>;
  explicit tokenizer(kind which) : which_(std::move(which)) {}

  // The tokens of a text, without the one at its beginning. Special tokens that are written out in the text become their
  // ids where the file is a tokenizer.json that names them. Throws a failure if the text is not UTF-8.
  std::vector<std::int32_t> encode(std::string_view text) const {
    expect_utf8(text, "text");
    return std::visit([&](const auto& t) { return t.encode(text); }, which_);
  }

  // The token that belongs before every text, if the tokenizer puts one there.
  std::optional<std::int32_t> bos() const {
    return std::visit([](const auto& t) { return t.bos(); }, which_);
  }

  // The text of tokens. Throws a failure at an id of no token.
  std::string decode(const std::vector<std::int32_t>& ids) const {
    return std::visit([&](const auto& t) { return t.decode(ids); }, which_);
  }

  // One past the largest id.
  std::size_t size() const {
    return std::visit([](const auto& t) { return t.size(); }, which_);
  }

 private:
  kind which_;
};

// Reads either kind, by what the file is. `vocabulary` is how many tokens the model knows: without it a tokenizer.bin
// cannot be read, and of a tokenizer.json no id may reach it (0: any may). Throws a failure that names file and field.
inline std::unique_ptr<tokenizer> read_tokenizer(const std::string& path, std::size_t vocabulary) {
  const std::string bytes = read_whole(path, std::size_t{1} << 28, "tokenizer");
  // The first number of a tokenizer.bin is a small one, four bytes long; JSON has no zero bytes.
  const bool binary = bytes.substr(0, 4).find('\0') != bytes.npos;
  if (binary) return std::make_unique<tokenizer>(llama2c_tokenizer(path, bytes, vocabulary));
  return std::make_unique<tokenizer>(hugging_face_tokenizer(path, parse_json_object(path, bytes), vocabulary));
}

}  // namespace lab
