// Safetensors files whose header lies, and folders whose tensors are not those of their config.
// SPDX-License-Identifier: MIT
#include "lab/model/safetensors.hpp"

#include <cstdint>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.hpp"
#include "lab/model/hugging_face.hpp"
#include "temporary_folder.hpp"

namespace {

using nlohmann::json;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> 8 * i & 0xFF);
  return bytes + rest;
}
std::string file_of(const std::string& header, std::size_t data) {
  return with_length(header.size(), header + std::string(data, '\0'));
}
json entry(const char* type, const json& shape, std::uint64_t first, std::uint64_t last) {
  return {{"dtype", type}, {"shape", shape}, {"data_offsets", {first, last}}};
}
void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// What is complained about when a file of these bytes is read; the file is called FILE.
std::string complaint(const std::string& bytes) {
  const temporary_folder folder;
  const std::string path = folder.path() + "/model.safetensors";
  write(path, bytes);
  try {
    const lab::safetensors file(path);
  } catch (const lab::failure& failure) {
    return lab::replaced(failure.what(), path, "FILE");
  }
  return "nothing";
}

}  // namespace

TEST_CASE("A safetensors file is read as its header says") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/x.safetensors";
  const json header = {
      {"__metadata__", {{"format", "pt"}}}, {"b", entry("I64", {1}, 4, 12)}, {"a", entry("BF16", {1, 2}, 0, 4)}};
  std::string data("\x80\x3f\x00\xc0", 4);
  write(path, with_length(header.dump().size() + 2, header.dump() + "  " + data + std::string(8, '\1')));
  const lab::safetensors file(path);
  REQUIRE(file.tensors().size() == 2);
  const lab::stored_tensor& a = file.tensors().at("a");
  CHECK(a.shape == std::vector<std::uint64_t>{1, 2});
  float values[2];
  lab::dtype_named("bf16").widen(a.bytes, 2, values);
  CHECK((values[0] == 1 && values[1] == -2));
}

TEST_CASE("A header that lies is refused, and the tensor named") {
  CHECK(complaint("1234567") == "FILE: holds 7 bytes, no safetensors header");
  CHECK(complaint("") == "FILE: is empty");
  CHECK(complaint(with_length(1000, "{}")) == "FILE: is cut off: the header of 1000 bytes is longer than the file");
  CHECK(complaint(with_length(~std::uint64_t{0}, "{}")) ==
        "FILE: the header's length of 18446744073709551615 bytes is more than the format allows");
  CHECK(complaint(file_of("{]", 0)) == "FILE: the header is no JSON");
  CHECK(complaint(file_of("[]", 0)) == "FILE: the header is no JSON object");
  CHECK(complaint(file_of("{}", 0)) == "FILE: holds no tensor");
  const auto one = [](const json& value, std::size_t data) {
    return complaint(file_of(json{{"t", value}}.dump(), data));
  };
  CHECK(one(entry("F32", {2}, 0, 8), 8) == "nothing");
  CHECK(one(3, 8) == "FILE: tensor t has no dtype");
  CHECK(one({{"dtype", "F32"}, {"shape", {2}}}, 8) == "FILE: tensor t has no data_offsets");
  CHECK(one(entry("F33", {2}, 0, 8), 8) == "FILE: tensor t dtype F33 is not known");
  CHECK(one(entry("F32", {-2}, 0, 8), 8) == "FILE: tensor t shape holds what is no whole number");
  CHECK(one(entry("F32", 2, 0, 8), 8) == "FILE: tensor t shape is no list");
  CHECK(one(entry("F32", {2}, 8, 0), 8) == "FILE: tensor t data_offsets are no beginning and end");
  CHECK(one(entry("F32", {2}, 0, 8), 7) ==
        "FILE: tensor t ends at byte 8 of the data, the file at 7: is cut off, or its header is wrong");
  CHECK(one(entry("F32", {3}, 0, 8), 16) == "FILE: tensor t holds 8 bytes, its shape 3 of F32 needs 12");
  CHECK(one(entry("F32", {std::uint64_t{1} << 62, 4}, 0, 8), 8) ==
        "FILE: tensor t shape 4611686018427387904 x 4 is more than the file holds");
  CHECK(one(entry("F32", {2}, 0, 8), 9) == "FILE: holds 1 byte behind its last tensor");
  CHECK(one(entry("F32", {1}, 4, 8), 8) == "FILE: tensor t lies behind a gap of 4 bytes");
  const json overlap = {{"a", entry("F32", {2}, 0, 8)}, {"b", entry("F32", {2}, 4, 12)}};
  CHECK(complaint(file_of(overlap.dump(), 12)) == "FILE: tensor b overlaps the one before it");
}

namespace {

// A one-layer Llama of eight values, changed, as a folder; what is complained about, with the folder called DIR.
std::string model_complaint(const std::function<void(json& config, json& tensors)>& change, float value = 0.5f) {
  json config = {{"model_type", "llama"},       {"hidden_size", 8},         {"intermediate_size", 8},
                 {"num_hidden_layers", 1},      {"num_attention_heads", 2}, {"vocab_size", 8},
                 {"tie_word_embeddings", true}, {"rms_norm_eps", 1e-5}};
  json tensors = {{"model.embed_tokens.weight", {8, 8}}, {"model.norm.weight", {8}}};
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    tensors["model.layers.0." + std::string(name) + ".weight"] = {8, 8};
  for (const char* name : {"input_layernorm", "post_attention_layernorm"})
    tensors["model.layers.0." + std::string(name) + ".weight"] = {8};
  change(config, tensors);
  json header;
  std::string data;
  for (const auto& [name, shape] : tensors.items()) {
    std::size_t count = 1;
    for (const std::size_t side : shape) count *= side;
    const std::size_t first = data.size();
    for (std::size_t i = 0; i < count; ++i) data.append(reinterpret_cast<const char*>(&value), 4);
    header[name] = entry("F32", shape, first, data.size());
  }
  const temporary_folder folder;
  write(folder.path() + "/config.json", config.dump());
  write(folder.path() + "/model.safetensors", with_length(header.dump().size(), header.dump() + data));
  try {
    lab::read_hugging_face(folder.path());
  } catch (const lab::failure& failure) {
    return lab::replaced(failure.what(), folder.path(), "DIR");
  }
  return "nothing";
}

}  // namespace

TEST_CASE("Tensors that are missing, too many or of another shape are refused, and so is NaN") {
  CHECK(model_complaint([](json&, json&) {}) == "nothing");
  CHECK(model_complaint([](json&, json& t) { t.erase("model.norm.weight"); }) ==
        "DIR: tensor model.norm.weight is missing");
  CHECK(model_complaint([](json&, json& t) {
          t["model.layers.1.mlp.up_proj.weight"] = {8, 8};
        }) == "DIR/model.safetensors: tensor model.layers.1.mlp.up_proj.weight has no place in this model");
  CHECK(model_complaint([](json&, json& t) {
          t["model.layers.0.mlp.up_proj.weight"] = {8, 4};
        }) == "DIR/model.safetensors: tensor model.layers.0.mlp.up_proj.weight is 8 x 4; config.json asks for 8 x 8");
  CHECK(model_complaint([](json& c, json&) { c["tie_word_embeddings"] = false; }) ==
        "DIR: tensor lm_head.weight is missing");
  CHECK(model_complaint([](json&, json&) {}, std::nanf("")) ==
        "DIR/model.safetensors: tensor model.embed_tokens.weight holds NaN or infinity");
}

TEST_CASE("What the forward pass does not know is refused") {
  const auto with = [](const char* field, const json& value) {
    return model_complaint([&](json& c, json&) { c[field] = value; });
  };
  CHECK(with("model_type", "gpt2") ==
        "DIR/config.json: model_type 'gpt2' is unknown; known are llama, mistral, qwen2 and qwen3");
  CHECK(model_complaint([](json& c, json&) { c.erase("model_type"); }) ==
        "DIR/config.json: model_type is missing; known are llama, mistral, qwen2 and qwen3");
  CHECK(with("hidden_act", "gelu") == "DIR/config.json: hidden_act is 'gelu'; known is silu");
  CHECK(with("rope_scaling", {{"type", "yarn"}, {"factor", 2}}) ==
        "DIR/config.json: rope_scaling has rope_type 'yarn'; known are default, linear and llama3");
  CHECK(with("rope_scaling", {{"rope_type", "linear"}}) == "DIR/config.json: rope_scaling.factor is missing");
  CHECK(with("rms_norm_eps", "small") == "DIR/config.json: rms_norm_eps is 'small', no number above zero");
  CHECK(with("rope_theta", 0) == "DIR/config.json: rope_theta is 0, no number above zero");
  CHECK(with("partial_rotary_factor", 0.5) ==
        "DIR/config.json: partial_rotary_factor is not 1: heads that are rotated in part are unknown");
}

TEST_CASE("Shards must hold what their index says") {
  const temporary_folder folder;
  write(folder.path() + "/config.json",
        R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 2, "vocab_size": 8})");
  const auto complaint_of = [&](const std::string& index) {
    write(folder.path() + "/model.safetensors.index.json", index);
    try {
      lab::read_hugging_face(folder.path());
    } catch (const lab::failure& failure) {
      return lab::replaced(failure.what(), folder.path(), "DIR");
    }
    return std::string("nothing");
  };
  const std::string index = "DIR/model.safetensors.index.json: ";
  write(folder.path() + "/a.safetensors", file_of(json{{"x", entry("F32", {2}, 0, 8)}}.dump(), 8));
  write(folder.path() + "/b.safetensors", file_of(json{{"x", entry("F32", {2}, 0, 8)}}.dump(), 8));
  CHECK(complaint_of("{}") == index + "weight_map is missing");
  CHECK(complaint_of(R"({"weight_map": {"x": "../a.safetensors"}})") ==
        index + "weight_map: x names no file of this folder");
  CHECK(complaint_of(R"({"weight_map": {"x": "a.safetensors", "y": "a.safetensors"}})") ==
        "DIR/a.safetensors: tensor y is missing");
  CHECK(complaint_of(R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})") ==
        "DIR/b.safetensors: tensor x is in another file too");
  CHECK(complaint_of(R"({"weight_map": {"x": "none.safetensors"}})") ==
        "DIR/none.safetensors: could not be opened: No such file or directory");
}
