// Reads and runs a tokenizer.json, as Hugging Face's tokenizers write it, whose model is byte pair encoding.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "added_tokens.hpp"
#include "byte_pair.hpp"
#include "decoders.hpp"
#include "lab/json_file.hpp"
#include "lab/text.hpp"
#include "normalizers.hpp"
#include "pre_tokenizers.hpp"
#include "steps.hpp"
#include "unicode.hpp"

namespace lab {

// The text goes through five parts: added tokens are cut out, the rest is normalized, cut into pieces, each piece split
// into characters, and these merged. The ids are those that Hugging Face's own program gives, also where it leaves
// characters out: those that have neither a token nor bytes to fall back to, where the file names no unk_token.
// The file's truncation and padding are not read: the whole text is what is encoded.
class hugging_face_tokenizer {
 public:
  // `root` is what the file at `path` holds. No id may reach `vocabulary`, the entries of the model, unless that is 0.
  hugging_face_tokenizer(const std::string& path, const nlohmann::json& root, std::size_t vocabulary)
      : path_(path), vocabulary_(vocabulary) {
    const json_field file(path, root);
    if (!file["version"].missing() && file["version"].text() != "1.0") throw file["version"].not_read();
    normalizers_ = read_normalizers(file["normalizer"]);
    pre_tokenizers_ = read_pre_tokenizers(file["pre_tokenizer"]);
    decoders_ = read_decoders(file["decoder"]);
    separator_ = file["decoder"].missing() ? " " : "";
    read_model(file["model"]);
    read_added_tokens(file["added_tokens"]);
    each_step(file["post_processor"], "processors", [&](const json_field& step) { read_post_processor(step); });
  }

  std::vector<std::int32_t> encode(std::string_view text) const {
    std::vector<std::int32_t> ids;
    known_words words;
    const auto on_token = [&](std::int32_t id) { ids.push_back(id); };
    written_.split(
        text,
        [&](std::string_view between, std::size_t begin) {
          normalized_.split(
              normalized(std::string(between)),
              [&](std::string_view part, std::size_t part_begin) {
                std::vector<piece> pieces = {{std::string(part), begin == 0 && part_begin == 0}};
                for (const pre_tokenizer& step : pre_tokenizers_) step(pieces);
                for (const piece& p : pieces) append_word(p.text, words, ids);
              },
              on_token);
        },
        on_token);
    return ids;
  }

  std::optional<std::int32_t> bos() const { return bos_; }

  // Bytes that are no UTF-8 are given out as they are.
  std::string decode(const std::vector<std::int32_t>& ids) const {
    std::vector<std::string> tokens;
    for (const std::int32_t id : ids) {
      const auto found = names_.find(id);
      if (found == names_.end()) throw failure(path_ + ": has no token of the id " + std::to_string(id));
      tokens.push_back(found->second);
    }
    for (const decoder& step : decoders_) step(tokens);
    return joined(tokens, separator_);
  }

  std::size_t size() const { return size_; }

 private:
  using known_words = std::unordered_map<std::string, std::vector<std::int32_t>>;

  void read_model(const json_field& model) {
    // Files from before there was a type hold byte pair encoding if they hold merges.
    if (!model["type"].missing() && model["type"].text() != "BPE") throw model["type"].not_read();
    const json_field dropout = model["dropout"];
    if (!dropout.missing() && dropout.value() != 0) throw dropout.not_read();
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!model[affix].missing() && !model[affix].text().empty()) throw model[affix].not_read();
    fuse_unk_ = model["fuse_unk"].flag(false);
    ignore_merges_ = model["ignore_merges"].flag(false);

    const json_field vocab = model["vocab"];
    for (const auto& [token, value] : vocab.object().items()) {
      const std::int32_t id = expect_id(vocab[token]);
      const auto [other, is_new] = names_.emplace(id, token);
      if (!is_new)
        throw vocab.wrong("gives " + in_quotes(other->second) + " and " + in_quotes(token) + " one id, " +
                          std::to_string(id));
      ids_.emplace(token, id);
    }
    if (!model["unk_token"].missing()) {
      unk_name_ = model["unk_token"].text();
      unk_ = find(*unk_name_);
    }
    if (model["byte_fallback"].flag(false))
      for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte)
        byte_ids_[byte] = find(lab::text("<0x%02X>", static_cast<unsigned>(byte)));
    read_merges(model["merges"]);
  }

  // Each is "LEFT RIGHT" or ["LEFT", "RIGHT"]; the earlier is the better.
  void read_merges(const json_field& merges) {
    const nlohmann::json& list = merges.list();
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::string left, right;
      if (list[i].is_string()) {
        const auto& line = list[i].get_ref<const std::string&>();
        if (line.compare(0, 8, "#version") == 0) continue;
        const std::size_t space = line.find(' ');
        if (space == line.npos || line.find(' ', space + 1) != line.npos)
          throw merges[i].wrong("is " + in_quotes(line) + ", not two tokens with a space between");
        left = line.substr(0, space), right = line.substr(space + 1);
      } else if (list[i].is_array() && list[i].size() == 2) {
        left = merges[i][0].text(), right = merges[i][1].text();
      } else {
        throw merges[i].wrong("is not a pair of tokens");
      }
      const auto known = [&](const std::string& token) {
        if (const auto id = find(token)) return *id;
        throw merges[i].wrong("needs " + in_quotes(token) + ", which model.vocab does not have");
      };
      const std::int32_t merged = known(left + right);
      merges_.set(known(left), known(right), rank++, merged);
    }
  }

  void read_added_tokens(const json_field& list) {
    if (list.missing()) return;
    for (std::size_t i = 0; i < list.list().size(); ++i) {
      const json_field field = list[i];
      added_token token;
      token.content = field["content"].text();
      token.id = expect_id(field["id"]);
      token.single_word = field["single_word"].flag(false);
      token.lstrip = field["lstrip"].flag(false);
      token.rstrip = field["rstrip"].flag(false);
      token.normalized = field["normalized"].flag(!field["special"].flag(false));
      if (token.content.empty()) continue;
      const auto own = find(token.content);
      if (own.value_or(token.id) != token.id)
        throw field["id"].wrong("is " + std::to_string(token.id) + ", but in model.vocab " + in_quotes(token.content) +
                                " has the id " + std::to_string(*own));
      const std::string written = token.normalized ? normalized(token.content) : token.content;
      if (written.empty()) throw field["content"].wrong("is empty once it is normalized");
      const auto [name, is_new] = names_.emplace(token.id, written);
      if (!is_new && !own)
        throw field["id"].wrong("is " + std::to_string(token.id) + ", which is the id of " + in_quotes(name->second));
      name->second = written;
      if (!(token.normalized ? normalized_ : written_).add(written, token))
        throw field["content"].wrong("is " + in_quotes(token.content) + ", which is there twice");
    }
  }

  // Of the tokens that are put around a text only one before it is read. What ByteLevel does here does not touch ids.
  void read_post_processor(const json_field& step) {
    if (step["type"].text() == "ByteLevel") return;
    if (step["type"].text() != "TemplateProcessing") throw step["type"].not_read();
    const json_field single = step["single"];
    bool text_seen = false;
    for (std::size_t i = 0; i < single.list().size(); ++i) {
      if (!single[i]["Sequence"].missing()) {
        if (text_seen || single[i]["Sequence"]["id"].text() != "A") throw single.wrong("holds more than one text");
        text_seen = true;
        continue;
      }
      const std::string& name = single[i]["SpecialToken"]["id"].text();
      if (text_seen) throw single.wrong("puts " + in_quotes(name) + " behind the text, which is not done here");
      const json_field ids = step["special_tokens"][name]["ids"];
      if (bos_ || ids.list().size() != 1)
        throw single.wrong("puts several tokens before the text, which is not done here");
      bos_ = ids[0].count();
      if (names_.count(*bos_) == 0) throw ids[0].wrong("is " + std::to_string(*bos_) + ", the id of no token");
    }
    if (!text_seen) throw single.wrong("holds no text");
  }

  std::int32_t expect_id(const json_field& field) {
    const std::int32_t id = field.count();
    if (vocabulary_ != 0 && static_cast<std::size_t>(id) >= vocabulary_)
      throw field.wrong("is " + std::to_string(id) + ", but the model knows no more than " +
                        counted(vocabulary_, "token"));
    size_ = std::max(size_, static_cast<std::size_t>(id) + 1);
    return id;
  }

  std::optional<std::int32_t> find(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional<std::int32_t>(found->second);
  }

  std::string normalized(std::string text) const {
    for (const normalizer& step : normalizers_) text = step(text);
    return text;
  }

  // The tokens of one piece. Most texts are made of few words: those of this call are remembered.
  void append_word(const std::string& word, known_words& words, std::vector<std::int32_t>& ids) const {
    constexpr std::size_t longest_remembered = 256;
    const auto known = words.find(word);
    std::vector<std::int32_t> tokens;
    if (known == words.end()) {
      const auto whole = ignore_merges_ ? find(word) : std::nullopt;
      tokens = whole ? std::vector<std::int32_t>{*whole} : characters(word);
      if (!whole) merges_.apply(tokens);
      if (word.size() <= longest_remembered) words.emplace(word, tokens);
    }
    const std::vector<std::int32_t>& result = known == words.end() ? tokens : known->second;
    ids.insert(ids.end(), result.begin(), result.end());
  }

  // A token for each character, else one for each of its bytes, else the unknown token, one for several in a row if they
  // are fused. An unknown token is held back until the next character that has a token of its own.
  std::vector<std::int32_t> characters(const std::string& word) const {
    std::vector<std::int32_t> tokens;
    bool unknown = false;
    const auto end_unknown = [&] {
      if (unknown) tokens.push_back(*unk_);
      unknown = false;
    };
    for (std::size_t i = 0, bytes = 0; i < word.size(); i += bytes) {
      bytes = character_bytes(word, i);
      const std::string character = word.substr(i, bytes);
      if (const auto id = find(character)) {
        end_unknown();
        tokens.push_back(*id);
        continue;
      }
      const auto byte_id = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
      if (std::all_of(character.begin(), character.end(), [&](char byte) { return byte_id(byte).has_value(); })) {
        for (const char byte : character) tokens.push_back(*byte_id(byte));
        continue;
      }
      if (!unk_name_) continue;
      if (!unk_)
        throw failure(path_ + ": model.unk_token is " + in_quotes(*unk_name_) + ", which model.vocab does not have");
      if (!fuse_unk_) end_unknown();
      unknown = true;
    }
    end_unknown();
    return tokens;
  }

  std::string path_;
  std::size_t vocabulary_;
  std::vector<normalizer> normalizers_;
  std::vector<pre_tokenizer> pre_tokenizers_;
  std::vector<decoder> decoders_;
  std::string separator_;
  std::unordered_map<std::string, std::int32_t> ids_;    // of the model's tokens
  std::unordered_map<std::int32_t, std::string> names_;  // of the model's tokens and of the added ones
  byte_pair_merges merges_;
  bool fuse_unk_ = false, ignore_merges_ = false;
  std::optional<std::string> unk_name_;
  std::optional<std::int32_t> unk_;
  std::array<std::optional<std::int32_t>, 256> byte_ids_;
  added_token_finder written_, normalized_;  // of the text as it is, and of the normalized text
  std::optional<std::int32_t> bos_;
  std::size_t size_ = 0;
};

}  // namespace lab
