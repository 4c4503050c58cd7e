// Reads and runs a tokenizer.bin of llama2.c: the vocabulary of a SentencePiece model, with a score for each token.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "byte_pair.hpp"
#include "decoders.hpp"
#include "lab/failure.hpp"
#include "lab/tensor_file.hpp"
#include "lab/text.hpp"
#include "unicode.hpp"

namespace lab {

// Token 0 is the unknown one, 1 the beginning of a text, 2 its end, and 3 + b the byte b. A space is put before the text;
// of two neighbours whose texts together are a token's, those merge first whose token has the highest score.
class llama2c_tokenizer {
 public:
  // `bytes` is what the file at `path` holds: the length of the longest token, and for each token its score (a float),
  // its length and its text; all numbers have 32 bits, little-endian. The file does not say how many tokens there are.
  llama2c_tokenizer(const std::string& path, std::string_view bytes, std::size_t vocabulary) : path_(path) {
    if (vocabulary <= first_byte + 255)
      throw failure(path + ": a vocabulary of " + counted(vocabulary, "token") + " has none for each byte");
    std::size_t at = 0;
    const auto take = [&](std::size_t count, const std::string& what) {
      if (bytes.size() - at < count) throw failure(path + ": ends within " + what);
      at += count;
      return bytes.substr(at - count, count);
    };
    const std::uint32_t longest = number(take(4, "the length of the longest token"));
    std::vector<float> scores;
    for (std::size_t id = 0; id < vocabulary; ++id) {
      const std::string name = "token " + std::to_string(id) + " of " + std::to_string(vocabulary);
      float score = 0;
      widen<float>(reinterpret_cast<const unsigned char*>(take(4, "the score of " + name).data()), 1, &score);
      if (!std::isfinite(score)) throw failure(path + ": the score of " + name + " is not finite");
      const std::uint32_t length = number(take(4, "the length of " + name));
      if (length > longest)
        throw failure(path + ": " + name + " is " + counted(length, "byte") + " long, but the longest is said to be " +
                      std::to_string(longest));
      std::string token(take(length, "the text of " + name));
      const auto [other, is_new] = ids_.emplace(token, static_cast<std::int32_t>(id));
      if (!is_new) throw failure(path + ": " + name + " is the same as token " + std::to_string(other->second));
      tokens_.push_back(std::move(token));
      scores.push_back(score);
    }
    if (at != bytes.size())
      throw failure(path + ": holds more than the " + counted(vocabulary, "token") + " of the model");
    if (ids_.count(" ") == 0) throw failure(path + ": has no token for the space before a text");
    find_merges(scores);
  }

  std::vector<std::int32_t> encode(std::string_view text) const {
    std::vector<std::int32_t> ids;
    if (text.empty()) return ids;
    ids.push_back(ids_.at(" "));
    for (std::size_t i = 0, bytes = 0; i < text.size(); i += bytes) {
      bytes = character_bytes(text, i);
      const std::string character(text.substr(i, bytes));
      const auto found = ids_.find(character);
      if (found != ids_.end())
        ids.push_back(found->second);
      else
        for (const char byte : character) ids.push_back(first_byte + static_cast<unsigned char>(byte));
    }
    merges_.apply(ids);
    return ids;
  }

  std::optional<std::int32_t> bos() const { return beginning; }

  // A text's beginning is no text, and neither is the space before it. Bytes that are no UTF-8 are given out as they are.
  std::string decode(const std::vector<std::int32_t>& ids) const {
    std::string text;
    bool begins = true;
    for (const std::int32_t id : ids) {
      if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size())
        throw failure(path_ + ": has no token of the id " + std::to_string(id));
      const std::string& token = tokens_[static_cast<std::size_t>(id)];
      if (const std::optional<char> byte = byte_of_fallback(token))
        text += *byte;
      else if (id != beginning)
        text.append(token, begins && token.compare(0, 1, " ") == 0 ? 1 : 0);
      begins = id == beginning;
    }
    return text;
  }

  std::size_t size() const { return tokens_.size(); }

 private:
  static constexpr std::int32_t beginning = 1, first_byte = 3;

  static std::uint32_t number(std::string_view bytes) {
    std::uint32_t n = 0;
    for (std::size_t i = 4; i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[i]);
    return n;
  }

  // Every way to cut a token into two tokens is a merge; its rank is the token's place among the scores.
  void find_merges(const std::vector<float>& scores) {
    std::map<float, std::uint32_t, std::greater<float>> ranks;
    for (const float score : scores) ranks.emplace(score, 0);
    std::uint32_t next = 0;
    for (auto& [score, rank] : ranks) rank = next++;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      const std::string& token = tokens_[id];
      for (std::size_t cut = 1; cut < token.size(); ++cut) {
        const auto left = ids_.find(token.substr(0, cut)), right = ids_.find(token.substr(cut));
        if (left != ids_.end() && right != ids_.end())
          merges_.set(left->second, right->second, ranks.at(scores[id]), static_cast<std::int32_t>(id));
      }
    }
  }

  std::string path_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  byte_pair_merges merges_;
};

}  // namespace lab
