// The forward pass of every architecture against logits that transformers computed.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "lab/model/forward.hpp"
#include "lab/model/hugging_face.hpp"
#include "lab/model/llama2c.hpp"
#include "lab/parallel.hpp"
#include "recorded_logits.hpp"
#include "temporary_folder.hpp"

namespace {

// The values of make_models.py, drawn here again: whole numbers from -128 to 127 by SplitMix64 from the name's hash.
std::uint64_t hashed(const std::string& name) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return value;
}
int draw(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t x = seed + (i + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  x ^= x >> 31;
  return static_cast<int>(x >> 56) - 128;
}
bool ends_with(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}
std::vector<float> values(const std::string& name, const std::vector<std::uint64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t side : shape) count *= side;
  int bits = 0;
  while (shape.size() == 2 && (shape[1] - 1) >> bits != 0) ++bits;
  const std::uint64_t seed = hashed(name);
  std::vector<float> drawn(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const int k = draw(seed, i);
    double x = std::ldexp(k, -7 + 1 - bits / 2);
    if (ends_with(name, "norm.weight"))
      x = 1 + std::floor(k / 32.0) / 8;
    else if (ends_with(name, "bias"))
      x = k / 512.0;
    else if (name == "model.embed_tokens.weight")
      x = k / 128.0;
    drawn[i] = static_cast<float>(x);
  }
  return drawn;
}

// All values have eight significant bits or fewer, so that cutting bits off changes none.
std::string bytes_of(float x, const std::string& type) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, 4);
  if (type == "BF16") bits >>= 16;
  if (type == "F16") {
    const std::uint32_t sign = bits >> 31 << 15, magnitude = bits & 0x7FFFFFFF;
    bits = magnitude == 0 ? sign : sign | ((magnitude >> 13) - (112u << 10));
  }
  std::string bytes;
  for (std::size_t i = 0; i < (type == "F32" ? 4u : 2u); ++i) bytes += static_cast<char>(bits >> 8 * i & 0xFF);
  return bytes;
}

struct architecture {
  const char* name;
  const char* config;
  const char* type;
  std::size_t shards;
};
// As make_models.py has them, in the words of older files where these differ.
const architecture architectures[] = {
    {"llama",
     R"("model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 10000.0, "rope_scaling": {"rope_type": "llama3",
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64})",
     "BF16", 1},
    {"smollm2",
     R"("model_type": "llama", "hidden_size": 72, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": true,
        "rope_theta": 100000.0, "rope_scaling": {"type": "linear", "factor": 2.0})",
     "F32", 1},
    {"llama_biases",
     R"("model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 4, "attention_bias": true, "mlp_bias": true)",
     "F16", 2},
    {"mistral",
     R"("model_type": "mistral", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "head_dim": 24,
        "num_attention_heads": 4, "num_key_value_heads": 1, "rope_theta": 1000000.0, "sliding_window": null)",
     "F16", 1},
    {"qwen2",
     R"("model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": true, "rope_theta": 1000000.0,
        "use_sliding_window": false, "sliding_window": 32)",
     "F32", 3},
    {"qwen3",
     R"("model_type": "qwen3", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "head_dim": 32,
        "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": true, "rope_theta": 1000000.0)",
     "BF16", 1},
};

// The names and shapes of a model's tensors, written out from the papers' point of view: what is multiplied by what.
std::map<std::string, std::vector<std::uint64_t>> tensors_of(const nlohmann::json& c) {
  const std::uint64_t hidden = c.at("hidden_size"), inner = c.at("intermediate_size"),
                      heads = c.at("num_attention_heads");
  const std::uint64_t keys = c.at("num_key_value_heads"), head = c.value("head_dim", hidden / heads);
  const bool biases = c.value("attention_bias", false), qwen2 = c.at("model_type") == "qwen2";
  std::map<std::string, std::vector<std::uint64_t>> t = {{"model.embed_tokens.weight", {128, hidden}},
                                                         {"model.norm.weight", {hidden}}};
  if (!c.value("tie_word_embeddings", false)) t["lm_head.weight"] = {128, hidden};
  const auto linear = [&](const std::string& name, std::uint64_t out, std::uint64_t in, bool bias) {
    t[name + ".weight"] = {out, in};
    if (bias) t[name + ".bias"] = {out};
  };
  for (std::uint64_t i = 0; i < c.at("num_hidden_layers"); ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    t[layer + "input_layernorm.weight"] = t[layer + "post_attention_layernorm.weight"] = {hidden};
    linear(layer + "self_attn.q_proj", heads * head, hidden, biases || qwen2);
    linear(layer + "self_attn.k_proj", keys * head, hidden, biases || qwen2);
    linear(layer + "self_attn.v_proj", keys * head, hidden, biases || qwen2);
    linear(layer + "self_attn.o_proj", hidden, heads * head, biases);
    for (const char* name : {"mlp.gate_proj", "mlp.up_proj"})
      linear(layer + name, inner, hidden, c.value("mlp_bias", false));
    linear(layer + "mlp.down_proj", hidden, inner, c.value("mlp_bias", false));
    if (c.at("model_type") == "qwen3")
      t[layer + "self_attn.q_norm.weight"] = t[layer + "self_attn.k_norm.weight"] = {head};
  }
  return t;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  REQUIRE(file.good());
}

// Writes the model as Hugging Face does, in one file or several.
void write_model(const std::string& folder, const architecture& a) {
  const std::string config =
      std::string("{") + a.config + R"(, "vocab_size": 128, "max_position_embeddings": 128, "rms_norm_eps": 1e-05})";
  write_file(folder + "/config.json", config);
  std::vector<nlohmann::json> headers(a.shards);
  std::vector<std::string> data(a.shards);
  nlohmann::json places;
  std::size_t next = 0;
  for (const auto& [name, shape] : tensors_of(nlohmann::json::parse(config))) {
    const std::size_t shard = next++ % a.shards;
    const std::size_t begin = data[shard].size();
    for (const float x : values(name, shape)) data[shard] += bytes_of(x, a.type);
    headers[shard][name] = {{"dtype", a.type}, {"shape", shape}, {"data_offsets", {begin, data[shard].size()}}};
    places["weight_map"][name] = "part-" + std::to_string(shard) + ".safetensors";
  }
  for (std::size_t i = 0; i < a.shards; ++i) {
    const std::string header = headers[i].dump();
    std::string length;
    for (std::size_t k = 0; k < 8; ++k) length += static_cast<char>(header.size() >> 8 * k & 0xFF);
    write_file(folder + (a.shards == 1 ? "/model.safetensors" : "/part-" + std::to_string(i) + ".safetensors"),
               length + header + data[i]);
  }
  if (a.shards > 1) write_file(folder + "/model.safetensors.index.json", places.dump());
}

std::vector<std::int32_t> tokens() {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 48; ++i) ids.push_back((37 * i + 11) % 128);
  return ids;
}

double largest_difference(const lab::tensor& a, const lab::tensor& b) {
  REQUIRE(a.rows() == b.rows());
  return static_cast<double>((a - b).cwiseAbs().maxCoeff());
}

}  // namespace

TEST_CASE("The logits of every architecture are those of transformers") {
  for (const architecture& a : architectures) {
    INFO(a.name);
    const temporary_folder folder;
    write_model(folder.path(), a);
    const lab::transformer model = lab::read_hugging_face(folder.path());
    const std::vector<std::int32_t> ids = tokens();
    lab::treatment nothing;
    lab::kv_cache cache;
    const lab::tensor hidden = lab::forward(model, nothing, {{ids.data(), ids.size(), &cache}});
    const Eigen::RowVectorXf logits = hidden.row(hidden.rows() - 1) * model.head->transpose();
    const auto* const expected = std::find_if(std::begin(recorded_logits), std::end(recorded_logits),
                                              [&](const recorded& r) { return std::string(r.model) == a.name; });
    REQUIRE(expected != std::end(recorded_logits));
    double largest = 0;
    for (int i = 0; i < 128; ++i)
      largest = std::max(largest, static_cast<double>(std::fabs(logits(i) - expected->last_position[i])));
    CHECK(largest < 1e-3);
  }
}

TEST_CASE("A sequence gives the same whether it is read at once, in parts, beside others, or by fewer threads") {
  const temporary_folder folder;
  write_model(folder.path(), architectures[0]);
  const lab::transformer model = lab::read_hugging_face(folder.path());
  const std::vector<std::int32_t> ids = tokens();
  lab::treatment nothing;
  lab::kv_cache whole_cache, parts_cache, beside_cache, other_cache;
  const lab::tensor whole = lab::forward(model, nothing, {{ids.data(), ids.size(), &whole_cache}});

  lab::tensor parts(whole.rows(), whole.cols());
  for (std::size_t first = 0, count = 1; first < ids.size();
       first += count, count = std::min(count + 1, ids.size() - first))
    parts.middleRows(lab::index(first), lab::index(count)) =
        lab::forward(model, nothing, {{ids.data() + first, count, &parts_cache}});
  CHECK(largest_difference(whole, parts) < 1e-4);

  const lab::tensor both =
      lab::forward(model, nothing, {{ids.data() + 5, 20, &other_cache}, {ids.data(), ids.size(), &beside_cache}});
  CHECK(largest_difference(whole, both.bottomRows(whole.rows())) < 1e-4);

  const lab::thread_limit one(1);
  lab::kv_cache cache;
  CHECK(whole == lab::forward(model, nothing, {{ids.data(), ids.size(), &cache}}));
}

TEST_CASE("A llama2.c checkpoint with neighbouring pairs gives what the same model with split halves gives") {
  const temporary_folder folder;
  write_model(folder.path(), architectures[2]);
  // The biases and the other head count of that model are left out here: only what llama2.c can say.
  const std::uint64_t hidden = 64, inner = 96, head = 16, vocabulary = 128;
  std::string file;
  for (const std::int32_t n : {64, 96, 2, 4, 2, -128, 128})
    for (std::size_t k = 0; k < 4; ++k) file += static_cast<char>(static_cast<std::uint32_t>(n) >> 8 * k & 0xFF);
  const auto put = [&](const std::vector<float>& numbers) {
    for (const float x : numbers) file += bytes_of(x, "F32");
  };
  // Rows of a head in the order that turns neighbours: 0, 8, 1, 9, ... of the split one.
  const auto interleaved = [&](const std::vector<float>& rows) {
    std::vector<float> out(rows.size());
    for (std::size_t r = 0; r < rows.size() / hidden; ++r) {
      const std::size_t i = r % head, from = r - i + i / 2 + i % 2 * (head / 2);
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(from * hidden), hidden,
                  out.begin() + static_cast<std::ptrdiff_t>(r * hidden));
    }
    return out;
  };
  const auto layers = [&](const std::string& name, const std::vector<std::uint64_t>& shape, bool turned) {
    for (int i = 0; i < 2; ++i) {
      const std::vector<float> v = values("model.layers." + std::to_string(i) + "." + name, shape);
      put(turned ? interleaved(v) : v);
    }
  };
  put(values("model.embed_tokens.weight", {vocabulary, hidden}));
  layers("input_layernorm.weight", {hidden}, false);
  layers("self_attn.q_proj.weight", {hidden, hidden}, true);
  layers("self_attn.k_proj.weight", {hidden / 2, hidden}, true);
  layers("self_attn.v_proj.weight", {hidden / 2, hidden}, false);
  layers("self_attn.o_proj.weight", {hidden, hidden}, false);
  layers("post_attention_layernorm.weight", {hidden}, false);
  layers("mlp.gate_proj.weight", {inner, hidden}, false);
  layers("mlp.down_proj.weight", {hidden, inner}, false);
  layers("mlp.up_proj.weight", {inner, hidden}, false);
  put(values("model.norm.weight", {hidden}));
  put(std::vector<float>(128 * 16));
  put(values("lm_head.weight", {vocabulary, hidden}));
  write_file(folder.path() + "/model.bin", file);
  const lab::transformer ours = lab::read_llama2c(folder.path() + "/model.bin");

  // The first architecture is that model but for its scaled rotation.
  const temporary_folder other;
  architecture plain = architectures[0];
  plain.config =
      R"("model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 10000.0)";
  write_model(other.path(), plain);
  const lab::transformer theirs = lab::read_hugging_face(other.path());
  const std::vector<std::int32_t> ids = tokens();
  lab::treatment nothing;
  lab::kv_cache a, b;
  const lab::tensor x = lab::forward(ours, nothing, {{ids.data(), ids.size(), &a}});
  const lab::tensor y = lab::forward(theirs, nothing, {{ids.data(), ids.size(), &b}});
  CHECK(largest_difference(x, y) < 1e-4);
  CHECK(ours.head->isApprox(*theirs.head));
}

namespace {

// Writes down what is called.
class recorder : public lab::treatment {
 public:
  struct call {
    lab::site where;
    std::size_t layer, rows, cols;
    bool operator==(const call& o) const {
      return where == o.where && layer == o.layer && rows == o.rows && cols == o.cols;
    }
  };
  std::vector<call> calls;
  std::vector<std::vector<float>> keys_seen;

  void round(lab::site where, std::size_t layer, octet::matrix_view<float> m) override {
    const std::lock_guard<std::mutex> lock(adding_);
    calls.push_back({where, layer, m.rows, m.cols});
    if (where != lab::site::keys) return;
    keys_seen.emplace_back();
    for (std::size_t r = 0; r < m.rows; ++r)
      for (std::size_t c = 0; c < m.cols; ++c) keys_seen.back().push_back(m(r, c));
  }

 private:
  std::mutex adding_;
};

void pass(const lab::transformer& model, std::size_t count, recorder& seen) {
  lab::kv_cache cache;
  const std::vector<std::int32_t> ids = tokens();
  const lab::thread_limit one(1);
  lab::forward(model, seen, {{ids.data(), count, &cache}});
}

}  // namespace

TEST_CASE("A recipe is asked at every place of every layer, in the order of the arithmetic") {
  const architecture& mistral = architectures[3];  // its heads together are wider than its hidden state
  const temporary_folder folder;
  write_model(folder.path(), mistral);
  const lab::transformer model = lab::read_hugging_face(folder.path());
  using lab::site;
  std::vector<recorder::call> expected;
  for (std::size_t layer = 0; layer < 2; ++layer) {
    expected.push_back({site::qkv_input, layer, 5, 64});
    expected.push_back({site::keys, layer, 5, 24});
    expected.push_back({site::values, layer, 5, 24});
    for (int head = 0; head < 4; ++head) expected.push_back({site::softmax, layer, 5, 5});
    expected.push_back({site::o_input, layer, 5, 96});
    expected.push_back({site::gate_up_input, layer, 5, 64});
    expected.push_back({site::down_input, layer, 5, 128});
  }
  expected.push_back({site::head_input, 2, 5, 64});
  for (const bool before_rope : {false, true}) {
    recorder seen;
    seen.keys.before_rope = before_rope;
    pass(model, 5, seen);
    CHECK(seen.calls == expected);
  }
}

TEST_CASE("Keys are seen rotated or not, as the recipe says") {
  const temporary_folder folder;
  write_model(folder.path(), architectures[0]);
  const lab::transformer model = lab::read_hugging_face(folder.path());
  recorder turned, plain;
  plain.keys.before_rope = true;
  pass(model, 3, turned);
  pass(model, 3, plain);
  const std::vector<float>&after = turned.keys_seen[0], &before = plain.keys_seen[0];
  const std::size_t width = after.size() / 3, head_dim = 16;
  // Position 0 is not turned. Later ones are, and each pair of values (i, i + half a head) keeps its length.
  CHECK(std::equal(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(width), before.begin()));
  for (std::size_t row = 1; row < 3; ++row) {
    CHECK_FALSE(std::equal(after.begin() + static_cast<std::ptrdiff_t>(row * width),
                           after.begin() + static_cast<std::ptrdiff_t>((row + 1) * width),
                           before.begin() + static_cast<std::ptrdiff_t>(row * width)));
    for (std::size_t i = 0; i < head_dim / 2; ++i) {
      const auto length = [&](const std::vector<float>& k) {
        return std::hypot(k[row * width + i], k[row * width + i + head_dim / 2]);
      };
      CHECK(length(after) == Approx(length(before)));
    }
  }
}
