// The tokenizers of the examples, against what the Python package tokenizers gives and against merging in the plainest way.
// SPDX-License-Identifier: MIT
#include "lab/tokenizers/tokenizer.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "catch.hpp"

namespace {

using ids = std::vector<std::int32_t>;
using strings = std::vector<std::string>;
using nlohmann::json;

// A file of these bytes, for as long as this lives.
class temporary_file {
 public:
  explicit temporary_file(const std::string& bytes)
      : path_((std::filesystem::temp_directory_path() / ("octet_tokenizer_" + std::to_string(std::random_device()())))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~temporary_file() { std::filesystem::remove(path_); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::unique_ptr<lab::tokenizer> tokenizer_of(const std::string& bytes, std::size_t vocabulary = 0) {
  return lab::read_tokenizer(temporary_file(bytes).path(), vocabulary);
}

// What is complained about when a tokenizer is read; the file is called FILE.
std::string complaint(const std::string& bytes, std::size_t vocabulary = 0) {
  const temporary_file file(bytes);
  try {
    lab::read_tokenizer(file.path(), vocabulary);
  } catch (const lab::failure& failure) {
    return lab::replaced(failure.what(), file.path(), "FILE");
  }
  return "nothing";
}

// Shaped like Qwen2's and Llama 3's: NFC, a pattern, bytes as letters, a token before the text.
const char* const byte_level_json = R"json({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [
    {"id": 21, "content": "<|begin|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 22, "content": "<|end|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
  "normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
  "post_processor": {"type": "Sequence", "processors": [
    {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true},
    {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<|begin|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
      "special_tokens": {"<|begin|>": {"id": "<|begin|>", "ids": [21], "tokens": ["<|begin|>"]}}}]},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
    "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
    "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "Ã": 4, "©": 5, "Ċ": 6, "1": 7, "2": 8, "'": 9, "s": 10, "ab": 11, "bc": 12,
      "Ġab": 13, "abc": 14, "Ã©": 15, "ĠĠ": 16, "12": 17, "'s": 18, "bcbc": 19, "acb": 20},
    "merges": [["b", "c"], ["a", "b"], ["Ġ", "ab"], ["a", "bc"], ["Ã", "©"], ["Ġ", "Ġ"], ["1", "2"], ["'", "s"], ["bc", "bc"]]}})json";

// Shaped like Llama 2's: a mark before the text and for each space, bytes for characters without a token.
const char* const sentence_piece_json = R"json({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [
    {"id": 0, "content": "<unk>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 1, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
  "normalizer": {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
  "pre_tokenizer": null,
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
  "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
  "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null, "end_of_word_suffix": null,
    "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
    "vocab": {"<unk>": 0, "<s>": 1, "<0xE4>": 2, "<0xB8>": 3, "<0xAD>": 4, "▁": 5, "a": 6, "b": 7, "▁a": 8, "ab": 9, "▁▁": 10, "b▁": 11},
    "merges": ["▁ ▁", "▁ a", "a b", "b ▁"]}})json";

json byte_level() { return json::parse(byte_level_json); }
json sentence_piece() { return json::parse(sentence_piece_json); }

// The pieces that a pre_tokenizer makes of one text, each with a bar behind it.
std::string pieces(const json& pre_tokenizer, const std::string& text) {
  std::vector<lab::piece> all = {{text, true}};
  for (const lab::pre_tokenizer& step : lab::read_pre_tokenizers(lab::json_field("FILE", pre_tokenizer))) step(all);
  std::string shown;
  for (const lab::piece& p : all) shown += p.text + "|";
  return shown;
}
json split_by(const std::string& regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}

std::string normalized(const json& normalizer, std::string text) {
  for (const lab::normalizer& step : lab::read_normalizers(lab::json_field("FILE", normalizer))) text = step(text);
  return text;
}

std::string decoded(const json& decoder, strings tokens) {
  for (const lab::decoder& step : lab::read_decoders(lab::json_field("FILE", decoder))) step(tokens);
  return lab::joined(tokens, "|");
}

// The bytes of a tokenizer.bin.
std::string binary(const std::vector<std::pair<float, std::string>>& tokens, std::uint32_t longest) {
  std::string bytes;
  const auto put = [&](std::uint32_t n) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(n >> 8 * i & 0xFF);
  };
  put(longest);
  for (const auto& [score, token] : tokens) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &score, 4);
    put(bits);
    put(static_cast<std::uint32_t>(token.size()));
    bytes += token;
  }
  return bytes;
}

// 259 tokens that every such file begins with, then " ", "a", "b", "ab", "ba", " a", "aba".
std::vector<std::pair<float, std::string>> llama2c_tokens() {
  std::vector<std::pair<float, std::string>> tokens = {{0.f, "<unk>"}, {0.f, "\n<s>\n"}, {0.f, "\n</s>\n"}};
  for (unsigned byte = 0; byte < 256; ++byte) tokens.emplace_back(0.f, lab::text("<0x%02X>", byte));
  for (const auto& [score, token] : std::vector<std::pair<float, std::string>>{
           {-6.f, " "}, {-6.f, "a"}, {-6.f, "b"}, {-2.f, "ab"}, {-1.f, "ba"}, {-3.f, " a"}, {-2.f, "aba"}})
    tokens.emplace_back(score, token);
  return tokens;
}

}  // namespace

TEST_CASE("Merging gives what the plainest way to merge gives") {
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return static_cast<std::int32_t>(random() % n); };
  for (int trial = 0; trial < 2000; ++trial) {
    // Tokens 0 to 3 are letters; each merge makes a new token of two older ones. Ranks may be equal.
    lab::byte_pair_merges merges;
    std::map<std::pair<std::int32_t, std::int32_t>, std::pair<std::uint32_t, std::int32_t>> table;
    std::map<std::int32_t, std::string> text = {{0, "a"}, {1, "b"}, {2, "c"}, {3, "d"}};
    std::map<std::string, std::int32_t> token_of = {{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}};
    for (int i = 0; i < 12; ++i) {
      const auto tokens = static_cast<unsigned>(text.size());
      const std::int32_t left = below(tokens), right = below(tokens);
      const std::string both = text[left] + text[right];
      const auto merged = token_of.emplace(both, static_cast<std::int32_t>(tokens)).first->second;
      text[merged] = both;
      const auto rank = static_cast<std::uint32_t>(below(8));
      merges.set(left, right, rank, merged);
      table[{left, right}] = {rank, merged};
    }
    ids fast, plain;
    for (int i = below(40); i > 0; --i) plain.push_back(below(4));
    fast = plain;
    merges.apply(fast);
    for (;;) {
      std::optional<std::size_t> best;
      const auto rank = [&](std::size_t i) { return table.at({plain[i], plain[i + 1]}).first; };
      for (std::size_t i = 0; i + 1 < plain.size(); ++i)
        if (table.count({plain[i], plain[i + 1]}) != 0 && (!best || rank(i) < rank(*best))) best = i;
      if (!best) break;
      plain[*best] = table.at({plain[*best], plain[*best + 1]}).second;
      plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
    }
    REQUIRE(fast == plain);
  }
}

TEST_CASE("A line of a million letters is one word and takes no square of its length") {
  json file = byte_level();
  std::string run = "a";
  for (std::int32_t id = 100; id < 110; ++id) {
    file["model"]["merges"].push_back({run, run});
    run += run;
    file["model"]["vocab"][run] = id;
  }
  const auto t = tokenizer_of(file.dump());
  // 1,000,000 letters are 976 runs of 1,024, then 576 = 512 + 64.
  ids expected(976, 109);
  expected.insert(expected.end(), {108, 105});
  CHECK(t->encode(std::string(1000000, 'a')) == expected);
  CHECK(t->encode(std::string(1000000, ' ')).size() == 500000);
}

// What texts become, recorded from the package.
using recorded = std::vector<std::pair<std::string, ids>>;
void check_recorded(const json& file, const recorded& texts) {
  const auto t = tokenizer_of(file.dump());
  for (const auto& [text, expected] : texts) {
    INFO(text);
    CHECK(t->encode(text) == expected);
  }
}

TEST_CASE("A byte-level tokenizer.json gives the ids of the package") {
  check_recorded(byte_level(), {{"abc", {14}},
                                {"ab", {11}},
                                {"abcb", {14, 1}},
                                {"acb", {0, 2, 1}},
                                {" ab", {13}},
                                {"  ab", {3, 13}},
                                {"a ab\n", {0, 13, 6}},
                                {"aé", {0, 15}},
                                {"ae\u0301", {0, 15}},
                                {"aé\u0301b", {0, 15, 1}},
                                {"1212", {17, 7, 8}},
                                {"12 1", {17, 3, 7}},
                                {"a's", {0, 18}},
                                {"A's", {18}},
                                {"'ſ", {9}},
                                {"bcbc", {19}},
                                {"abcbc", {14, 12}},
                                {"ab<|end|>ab", {11, 22, 11}},
                                {"ab<|end", {11}},
                                {"<|begin|>  <|end|> ", {21, 16, 22, 3}},
                                {"a中b", {11}},
                                {"  \n\n a", {16, 6, 6, 3, 0}},
                                {"bc\u00A0ab", {12, 11}},
                                {"a\u180Eb\u180E", {0, 1}},
                                {"", {}}});
  const auto t = tokenizer_of(byte_level_json);
  CHECK(t->bos() == 21);
  CHECK(t->size() == 23);
  CHECK(t->decode({21, 13, 15, 6, 22}) == "<|begin|> abé\n<|end|>");
  CHECK(t->decode({4}) == "\xC3");
  CHECK(t->decode({}).empty());
}

TEST_CASE("Merges are read as pairs and as lines with a space, with or without the model's type") {
  json file = byte_level();
  file["model"].erase("type");
  json lines = json::array({"#version: 0.2"});
  for (const json& pair : file["model"]["merges"])
    lines.push_back(pair[0].get<std::string>() + " " + pair[1].get<std::string>());
  file["model"]["merges"] = lines;
  check_recorded(file, {{"abcb", {14, 1}}, {"abcbc", {14, 12}}, {" ab", {13}}});
}

TEST_CASE("Where merges are ignored a piece that is a token becomes that token") {
  json file = byte_level();
  file["model"]["ignore_merges"] = true;
  check_recorded(file, {{"acb", {20}}, {"abc", {14}}, {"aacb", {0, 0, 2, 1}}, {"bcbc", {19}}});
}

TEST_CASE("A SentencePiece-style tokenizer.json gives the ids of the package") {
  json file = sentence_piece();
  check_recorded(file, {{"a", {8}},
                        {"ab", {8, 7}},
                        {"a b a", {8, 5, 7, 8}},
                        {"  a", {10, 8}},
                        {"ab  ab", {8, 7, 10, 9}},
                        {" ", {10}},
                        {"中", {5, 2, 3, 4}},
                        {"a中", {8, 2, 3, 4}},
                        {"日", {5, 0}},
                        {"日日", {5, 0}},
                        {"日a日", {5, 0, 6, 0}},
                        {"中日中", {5, 2, 3, 4, 2, 3, 4, 0}},
                        {"<s>a", {1, 8}},
                        {"a<s>a", {8, 1, 8}},
                        {"a <s> a", {8, 5, 1, 10, 6}},
                        {"<s>", {1}},
                        {"", {}}});
  const auto t = tokenizer_of(file.dump());
  CHECK(t->bos() == 1);
  CHECK(t->size() == 12);
  CHECK(t->decode({8, 5, 7, 8}) == "a b a");
  CHECK(t->decode({8, 2, 3, 4}) == "a中");
  CHECK(t->decode({1, 8}) == "<s> a");

  file["model"]["fuse_unk"] = false;
  check_recorded(file, {{"日日", {5, 0, 0}}, {"中日中", {5, 2, 3, 4, 2, 3, 4, 0}}, {"日a日", {5, 0, 6, 0}}});
  file["model"]["unk_token"] = nullptr;
  check_recorded(file, {{"日日", {5}}, {"中日中", {5, 2, 3, 4, 2, 3, 4}}, {"日a日", {8}}});
  file = sentence_piece();
  file["model"]["byte_fallback"] = false;
  check_recorded(file, {{"日日", {5, 0}}, {"中日中", {5, 0}}, {"中a", {5, 0, 6}}});
}

TEST_CASE("An unknown token that the model lacks is missed only where it is needed") {
  json file = sentence_piece();
  file["model"]["unk_token"] = "<?>";
  const auto t = tokenizer_of(file.dump());
  CHECK(t->encode("a") == ids{8});
  CHECK_THROWS_WITH(t->encode("日"),
                    Catch::Matchers::EndsWith("model.unk_token is '<?>', which model.vocab does not have"));
}

TEST_CASE("Added tokens are found in the text: the longest, whole words only, with the white space beside them") {
  const auto with = [](json file, const std::vector<json>& tokens) {
    for (json token : tokens) {
      for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized", "special"}) token.emplace(flag, false);
      file["added_tokens"].push_back(token);
    }
    return file;
  };
  check_recorded(with(byte_level(), {{{"id", 23}, {"content", "<m>"}},
                                     {{"id", 24}, {"content", "<m><m>"}},
                                     {{"id", 11}, {"content", "ab"}, {"normalized", true}, {"single_word", true}}}),
                 {{"a<m>a", {0, 23, 0}},
                  {"a <m> a", {0, 3, 23, 3, 0}},
                  {"<m><m><m>", {24, 23}},
                  {"ab", {11}},
                  {"ab ab", {11, 3, 11}},
                  {" abab", {13, 11}},
                  {"ab_ ab", {11, 3, 11}},
                  {"ab- ab", {11, 3, 11}},
                  {" éab", {3, 15, 11}},
                  {" ab中", {13}},
                  {"ab<m> ab", {11, 23, 3, 11}}});
  check_recorded(with(byte_level(), {{{"id", 23}, {"content", "<l>"}, {"lstrip", true}},
                                     {{"id", 24}, {"content", "<r>"}, {"rstrip", true}},
                                     {{"id", 25}, {"content", " <w>"}},
                                     {{"id", 26}, {"content", "é"}, {"normalized", true}},
                                     {{"id", 27}, {"content", "e\u0302"}}}),
                 {{"a  <l>  a", {0, 23, 3, 3, 0}},
                  {"a  <r> \n a", {0, 16, 24, 0}},
                  {"<r>  <l>a", {24, 23, 0}},
                  {"<r> <w>a", {24, 25, 0}},
                  {"ae\u0301a", {0, 26, 0}},
                  {"aéa", {0, 26, 0}},
                  {"ae\u0302a", {0, 27, 0}},
                  {"aêa", {0, 4, 0}},
                  {"a\u3000\u0085<l>\u180E<l>a", {0, 23, 23, 0}}});
  json file = sentence_piece();
  for (json& token : file["added_tokens"]) token["normalized"] = true;
  check_recorded(file, {{"a<s>a", {8, 0, 6}}, {"<s>a", {1, 6}}, {"a <s>a", {8, 1, 6}}, {"▁<s>a", {5, 1, 6}}});
}

TEST_CASE("Patterns cut as they do in the package") {
  const std::string qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  CHECK(pieces(split_by(qwen2), "Hello, y'all! I'LL  be\t there\n\n  in 2024...\r\n x\u00A0y") ==
        "Hello|,| y|'all|!| I|'LL| | be|\t| there|\n\n| | in| |2|0|2|4|...\r\n| x|\u00A0y|");
  CHECK(pieces(split_by(qwen2), " a  b ") == " a| | b| |");
  CHECK(pieces(split_by(qwen2), "中文 text№五Ⅷ") == "中文| text|№五|Ⅷ|");
  CHECK(pieces(split_by(qwen2), "a\u180E b") == "a|\u180E| b|");
  CHECK(pieces(split_by(qwen2), "'ſ x'") == "'ſ| x|'|");
  CHECK(pieces(split_by(qwen2), "...\n\na") == "...\n\n|a|");
  CHECK(pieces(split_by(qwen2), "e\u0301x") == "e|\u0301x|");
  const std::string llama3 = R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+)";
  CHECK(pieces(split_by(llama3), "12345 678") == "123|45| |678|");
  CHECK(pieces(split_by(R"(\d*)"), "a12b") == "a|12|b|");
  CHECK(pieces(split_by(R"(\d*)"), "abc") == "a|b|c|");  // nothing is matched before each letter
  CHECK(pieces(split_by(R"(\d+)"), "a३४b") == "a|३४|b|");
  // By hand: the classes, in and out of brackets, and an escape in braces.
  CHECK(pieces(split_by(R"(\S)"), "a \u180E\u3000\n") == "a| |\u180E|\u3000\n|");
  CHECK(pieces(split_by(R"([^\S\n])"), "\u2003\n\u180Ea") == "\u2003|\n\u180Ea|");
  CHECK(pieces(split_by(R"([\Sx])"), " a") == " |a|");
  CHECK(pieces(split_by(R"(\x{4e2d}+|\.)"), "中中.a") == "中中|.|a|");
}

TEST_CASE("What is matched is kept, left out, or joined to its neighbours") {
  const std::map<std::string, std::pair<std::string, std::string>> expected = {
      {"Removed", {"the|final|countdown|", "-|-|-|-|"}},
      {"Isolated", {"the|-|final|-|-|countdown|-|", "the|-|final|-|-|countdown|-|"}},
      {"MergedWithPrevious", {"the-|final-|-|countdown-|", "the|-final|-|-countdown|-|"}},
      {"MergedWithNext", {"the|-final|-|-countdown|-|", "the-|final-|-|countdown-|"}},
      {"Contiguous", {"the|-|final|--|countdown|-|", "the|-|final|--|countdown|-|"}}};
  for (const auto& [behavior, cut] : expected) {
    json split = {{"type", "Split"}, {"pattern", {{"String", "-"}}}, {"behavior", behavior}, {"invert", false}};
    INFO(behavior);
    CHECK(pieces(split, "the-final--countdown-") == cut.first);
    split["invert"] = true;
    CHECK(pieces(split, "the-final--countdown-") == cut.second);
  }
}

TEST_CASE("Digits, bytes and marks are cut as in the package") {
  CHECK(pieces({{"type", "Digits"}, {"individual_digits", true}}, "a12 ३४b½") == "a|1|2| |३|४|b|½|");
  CHECK(pieces({{"type", "Digits"}, {"individual_digits", false}}, "a12 ३४b½") == "a|12| |३४|b|½|");
  json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  CHECK(pieces(bytes, "I'm é  12a!\n") == "I|'m|ĠÃ©|Ġ|Ġ12|a|!|Ċ|");
  bytes["add_prefix_space"] = true;
  CHECK(pieces(bytes, "I am") == "ĠI|Ġam|");
  CHECK(pieces(bytes, " I") == "ĠI|");
  bytes["add_prefix_space"] = bytes["use_regex"] = false;
  CHECK(pieces(bytes, "a b\n\x7F") == "aĠbĊġ|");

  const auto metaspace = [](const char* scheme, bool split) {
    json cut = split_by("x");
    cut["behavior"] = "Removed";
    return json{{"type", "Sequence"},
                {"pretokenizers",
                 {cut, {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", split}}}}};
  };
  CHECK(pieces(metaspace("always", true), "a b  cxd e") == "▁a|▁b|▁|▁c|▁d|▁e|");
  CHECK(pieces(metaspace("always", false), "a b  cxd e") == "▁a▁b▁▁c|▁d▁e|");
  CHECK(pieces(metaspace("first", true), "a b  cxd e") == "▁a|▁b|▁|▁c|d|▁e|");
  CHECK(pieces(metaspace("first", false), "a b  cxd e") == "▁a▁b▁▁c|d▁e|");
  CHECK(pieces(metaspace("never", true), "a b  cxd e") == "a|▁b|▁|▁c|d|▁e|");
  CHECK(pieces(metaspace("never", false), "a b  cxd e") == "a▁b▁▁c|d▁e|");
  for (const char* scheme : {"always", "first", "never"}) CHECK(pieces(metaspace(scheme, true), " a") == "▁a|");
}

TEST_CASE("Only the first piece of a text gets a mark where the scheme says so, not one behind an added token") {
  json file = sentence_piece();
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}, {"split", false}};
  const auto t = tokenizer_of(file.dump());
  CHECK(t->encode("a<s>a") == ids{8, 1, 6});
  CHECK(t->encode("<s>a") == ids{1, 6});
}

TEST_CASE("Normalizers do what the package does") {
  const json nfc = {{"type", "NFC"}};
  CHECK(normalized(nfc, "e\u0301") == "é");
  CHECK(normalized(nfc, "a\u0301\u0323") == "\u1EA1\u0301");
  CHECK(normalized(nfc, "\u1100\u1161\u11A8") == "\uAC01");
  CHECK(normalized(nfc, "\u212B") == "Å");
  CHECK(normalized(nfc, "\u0958") == "\u0915\u093C");
  CHECK(normalized(nfc, "plain") == "plain");
  CHECK(normalized(nfc, std::string("\u2126\0e\u0301", 7)) == std::string("\u03A9\0é", 5));
  CHECK(normalized({{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", "_"}}, " a  b ") == "_a_b_");
  CHECK(normalized({{"type", "Prepend"}, {"prepend", ">"}}, "a") == ">a");
  CHECK(normalized({{"type", "Prepend"}, {"prepend", ">"}}, "").empty());
}

TEST_CASE("Decoders do what the package does") {
  CHECK(decoded({{"type", "ByteLevel"}}, {"Ġab", "Ã©", "中", "Ċ"}) == " ab|é|中|\n");
  CHECK(decoded({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 2}}, {"  a   ", "", " "}) == " a ||");
  CHECK(decoded({{"type", "ByteFallback"}}, {"<0xE4>", "<0xb8>", "<0xAD>", "<0xG1>", "x<0x41>"}) ==
        "\xE4|\xB8|\xAD|<0xG1>|x<0x41>");
  json marks = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}, {"split", true}};
  CHECK(decoded(marks, {"▁a", "▁b▁c"}) == "a| b c");
  marks["prepend_scheme"] = "never";
  CHECK(decoded(marks, {"▁a", "▁b▁c"}) == " a| b c");
  json file = sentence_piece();
  file["decoder"] = nullptr;
  CHECK(tokenizer_of(file.dump())->decode({8, 6}) == "▁a a");
}

// By hand, after the order of steps that llama2.c takes.
TEST_CASE("A tokenizer.bin merges by its scores, after a space, and falls back to bytes") {
  // " " 259, "a" 260, "b" 261, "ab" 262 (-2), "ba" 263 (-1), " a" 264 (-3), "aba" 265 (-2).
  const auto t = tokenizer_of(binary(llama2c_tokens(), 6), 266);
  CHECK(t->encode("a") == ids{264});
  CHECK(t->encode("ab") == ids{259, 262});  // "ab" is better than " a"
  CHECK(t->encode("ba") == ids{259, 263});
  CHECK(t->encode("aba") == ids{259, 265});        // "ba" first, then "a" + "ba"
  CHECK(t->encode("abab") == ids{259, 265, 261});  // "a" "ba" "b", of two of score -2 the left one
  CHECK(t->encode("é\n") == ids{259, 3 + 0xC3, 3 + 0xA9, 3 + '\n'});
  CHECK(t->encode("\n<s>\n") == ids{259, 3 + '\n', 3 + '<', 3 + 's', 3 + '>', 3 + '\n'});
  CHECK(t->encode("").empty());
  CHECK(t->bos() == 1);
  CHECK(t->size() == 266);
  CHECK(t->decode({1, 264, 259, 262}) == "a ab");
  CHECK(t->decode({259, 3 + 0xC3, 3 + 0xA9, 1, 264}) == "éa");
  CHECK_THROWS_WITH(t->decode({266}), Catch::Matchers::EndsWith(": has no token of the id 266"));
  CHECK_THROWS_WITH(t->decode({-1}), Catch::Matchers::EndsWith(": has no token of the id -1"));
}

TEST_CASE("A tokenizer.bin that is cut off, goes on, lies or repeats itself is refused") {
  const std::string whole = binary(llama2c_tokens(), 6);
  REQUIRE(complaint(whole, 266) == "nothing");
  for (std::size_t bytes = 2; bytes < whole.size(); ++bytes)
    if (complaint(whole.substr(0, bytes), 266).find("FILE: ends within the ") != 0) FAIL(bytes);
  CHECK(complaint(whole.substr(0, 3), 266) == "FILE: ends within the length of the longest token");
  CHECK(complaint(whole.substr(0, whole.size() - 1), 266) == "FILE: ends within the text of token 265 of 266");
  CHECK(complaint(whole, 267) == "FILE: ends within the score of token 266 of 267");
  CHECK(complaint(whole, 265) == "FILE: holds more than the 265 tokens of the model");
  CHECK(complaint(whole, 0) == "FILE: a vocabulary of 0 tokens has none for each byte");
  CHECK(complaint(whole, 258) == "FILE: a vocabulary of 258 tokens has none for each byte");
  CHECK(complaint(binary(llama2c_tokens(), 5), 266) ==
        "FILE: token 2 of 266 is 6 bytes long, but the longest is said to be 5");
  std::string lying = whole;
  lying[4 + 4 + 3] = '\x7F';
  CHECK(complaint(lying, 266) == "FILE: token 0 of 266 is 2130706437 bytes long, but the longest is said to be 6");
  auto tokens = llama2c_tokens();
  tokens[264].first = std::numeric_limits<float>::quiet_NaN();
  CHECK(complaint(binary(tokens, 6), 266) == "FILE: the score of token 264 of 266 is not finite");
  tokens = llama2c_tokens();
  tokens[264].second = "ab";
  CHECK(complaint(binary(tokens, 6), 266) == "FILE: token 264 of 266 is the same as token 262");
  tokens[264].second = "c";
  tokens[259].second = "d";
  CHECK(complaint(binary(tokens, 6), 266) == "FILE: has no token for the space before a text");
}

TEST_CASE("A tokenizer.json with a fault is refused, and the fault named") {
  REQUIRE(complaint(byte_level_json) == "nothing");
  const auto changed = [](json file, const std::string& field, const json& value) {
    file[json::json_pointer(field)] = value;
    return complaint(file.dump());
  };
  const std::vector<std::tuple<std::string, json, std::string>> faults = {
      {"/version", "2.0", "version is '2.0', which is not read here"},
      {"/model", nullptr, "model.vocab is missing"},
      {"/model/type", "Unigram", "model.type is 'Unigram', which is not read here"},
      {"/model/type", 7, "model.type is 7, no string"},
      {"/model/vocab", nullptr, "model.vocab is missing"},
      {"/model/vocab", json::array(), "model.vocab is a list, no object"},
      {"/model/vocab/a", -1, "model.vocab.a is -1, no whole number from 0 to 2147483647"},
      {"/model/vocab/a", 2147483648, "model.vocab.a is 2147483648, no whole number from 0 to 2147483647"},
      {"/model/vocab/a", 18446744073709551615u,
       "model.vocab.a is 18446744073709551615, no whole number from 0 to 2147483647"},
      {"/model/vocab/a", 0.5, "model.vocab.a is 0.5, no whole number from 0 to 2147483647"},
      {"/model/vocab/a", "0", "model.vocab.a is '0', no whole number from 0 to 2147483647"},
      {"/model/vocab/a", 1, "model.vocab gives 'a' and 'b' one id, 1"},
      {"/model/merges", nullptr, "model.merges is missing"},
      {"/model/merges", "a b", "model.merges is 'a b', no list"},
      {"/model/merges/1", "ab", "model.merges[1] is 'ab', not two tokens with a space between"},
      {"/model/merges/1", "a b c", "model.merges[1] is 'a b c', not two tokens with a space between"},
      {"/model/merges/1", {"a"}, "model.merges[1] is not a pair of tokens"},
      {"/model/merges/1", {"a", 1}, "model.merges[1][1] is 1, no string"},
      {"/model/merges/1", {"a", "x"}, "model.merges[1] needs 'ax', which model.vocab does not have"},
      {"/model/merges/1", {"b", "b"}, "model.merges[1] needs 'bb', which model.vocab does not have"},
      {"/model/merges/1", {"", "ab"}, "model.merges[1] needs '', which model.vocab does not have"},
      {"/model/dropout", 0.1, "model.dropout is 0.1, which is not read here"},
      {"/model/continuing_subword_prefix", "##", "model.continuing_subword_prefix is '##', which is not read here"},
      {"/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix is '</w>', which is not read here"},
      {"/model/ignore_merges", "yes", "model.ignore_merges is 'yes', neither true nor false"},
      {"/added_tokens", "none", "added_tokens is 'none', no list"},
      {"/added_tokens/0/id", nullptr, "added_tokens[0].id is missing"},
      {"/added_tokens/0/content", nullptr, "added_tokens[0].content is missing"},
      {"/added_tokens/0/content", "a", "added_tokens[0].id is 21, but in model.vocab 'a' has the id 0"},
      {"/added_tokens/1/content", "<|begin|>", "added_tokens[1].content is '<|begin|>', which is there twice"},
      {"/added_tokens/1/id", 0, "added_tokens[1].id is 0, which is the id of 'a'"},
      {"/added_tokens/1/id", 21, "added_tokens[1].id is 21, which is the id of '<|begin|>'"},
      {"/normalizer/type", "Lowercase", "normalizer.type is 'Lowercase', which is not read here"},
      {"/normalizer", {{"type", "Sequence"}}, "normalizer.normalizers is missing"},
      {"/normalizer", json::array({1}), "normalizer.type is missing"},
      {"/normalizer",
       {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", ""}},
       "normalizer.pattern.String is empty"},
      {"/normalizer", {{"type", "Replace"}, {"pattern", "x"}}, "normalizer.pattern.Regex is missing"},
      {"/pre_tokenizer/pretokenizers/0/type", "Whitespace",
       "pre_tokenizer.pretokenizers[0].type is 'Whitespace', which is not read here"},
      {"/pre_tokenizer/pretokenizers/0/behavior", "Sometimes",
       "pre_tokenizer.pretokenizers[0].behavior is 'Sometimes', which is not read here"},
      {"/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "__"}},
       "pre_tokenizer.replacement is not one character"},
      {"/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}, {"prepend_scheme", "first"}},
       "pre_tokenizer.add_prefix_space is false, which prepend_scheme contradicts"},
      {"/post_processor/processors/1/type", "BertProcessing",
       "post_processor.processors[1].type is 'BertProcessing', which is not read here"},
      {"/post_processor/processors/1/single/2",
       {{"SpecialToken", {{"id", "<|begin|>"}}}},
       "post_processor.processors[1].single puts '<|begin|>' behind the text, which is not done here"},
      {"/post_processor/processors/1/special_tokens/<|begin|>/ids",
       {21, 22},
       "post_processor.processors[1].single puts several tokens before the text, which is not done here"},
      {"/post_processor/processors/1/special_tokens/<|begin|>/ids/0", 99,
       "post_processor.processors[1].special_tokens.<|begin|>.ids[0] is 99, the id of no token"},
      {"/post_processor/processors/1/single", json::array(), "post_processor.processors[1].single holds no text"},
      {"/decoder/type", "WordPiece", "decoder.type is 'WordPiece', which is not read here"},
  };
  for (const auto& [field, value, expected] : faults) {
    INFO(field);
    CHECK(changed(byte_level(), field, value) == "FILE: " + expected);
  }
  CHECK(complaint(byte_level_json, 22) == "FILE: added_tokens[1].id is 22, but the model knows no more than 22 tokens");
  CHECK(complaint(byte_level_json, 1).find("FILE: model.vocab.") == 0);
  CHECK(complaint(byte_level_json, 23) == "nothing");
}

TEST_CASE("A pattern that Oniguruma and PCRE2 read differently is refused, and so is none") {
  const std::string field = "FILE: pre_tokenizer.pattern.Regex ";
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"(", "is no regular expression: missing closing parenthesis"},
      {"\\w+", "holds '\\w', which is not read here"},
      {"a\\b", "holds '\\b', which is not read here"},
      {"\\h", "holds '\\h', which is not read here"},
      {"\\1", "holds '\\1', which is not read here"},
      {"\\p{Han}", "holds '\\p{Han}', which is not read here"},
      {"\\pL", "holds '\\p', which is not read here"},
      {"\\", "holds '\\', which is not read here"},
      {"(?<n>a)", "holds '(?<', which is not read here"},
      {"(?m)a", "holds '(?m', which is not read here"},
      {"(*FAIL)", "holds '(*F', which is not read here"},
      {"[a[b]]", "holds '[', which is not read here"},
      {"[[:alpha:]]", "holds '[', which is not read here"},
      {"[a&&b]", "holds '&&', which is not read here"},
      {"[]a]", "holds '[]', which is not read here"},
      {"a{2}+", "holds '}+', which is not read here"},
      {"a{,2}", "holds '{,', which is not read here"},
      {"", "is empty"}};
  for (const auto& [pattern, expected] : faults) {
    json file = byte_level();
    file["pre_tokenizer"] = split_by(pattern);
    CHECK(complaint(file.dump()) == field + expected);
  }
}

TEST_CASE("What is no tokenizer is refused") {
  const std::string whole = byte_level_json;
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes)
    if (complaint(whole.substr(0, bytes)) != "FILE: is no JSON: ends too early") FAIL(bytes);
  CHECK(complaint("") == "FILE: is empty");
  CHECK(complaint("[]") == "FILE: is no JSON object");
  CHECK(complaint("{}") == "FILE: model.vocab is missing");
  CHECK(complaint("{\n  x") == "FILE: is no JSON from line 2, column 3 on");
  CHECK_THROWS_WITH(lab::read_tokenizer("no/such.json", 0),
                    "no/such.json: could not be opened: No such file or directory");
}

TEST_CASE("A text that is no UTF-8 is refused") {
  const auto t = tokenizer_of(byte_level_json);
  for (const char* bad : {"ab\x80", "ab\xC3", "ab\xC0\x80", "ab\xED\xA0\x80", "ab\xF4\x90\x80\x80", "ab\xFF"})
    CHECK_THROWS_WITH(t->encode(bad), "text: is no UTF-8 from byte 3 on");
  CHECK_THROWS_WITH(tokenizer_of(binary(llama2c_tokens(), 6), 266)->encode("\xFF"), "text: is no UTF-8 from byte 1 on");
}
