// The bytes a language model stores and reads to serve, in bf16 and in FP8, and the speed they allow at best.
// SPDX-License-Identifier: MIT
//
// c++ -std=c++17 -O2 -Iinclude -Iexamples examples/serving_budget.cpp -o serving_budget    (CLI11, nlohmann-json)
//
// To decode one token of every sequence in a batch, a machine reads every weight once and the whole KV cache once. Long
// before it runs out of arithmetic it runs out of memory bandwidth, so bytes are what decoding costs.
#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "lab/checks.hpp"
#include "lab/csv.hpp"
#include "lab/model_config.hpp"
#include "lab/program.hpp"
#include "lab/table.hpp"
#include "lab/text.hpp"
#include "lab/whole_file.hpp"
#include "octet/footprint.hpp"

namespace {

using lab::counted;
using lab::text;
using octet::count_product;
using octet::count_sum;

// What a data sheet says: bandwidth in GB/s, dense matrix arithmetic in Tflop/s.
struct machine {
  std::string name;
  double bandwidth, bf16_tflops, fp8_tflops;
};
const std::vector<machine> known_machines = {
    {"H100", 3350, 989, 1979}, {"H200", 4800, 989, 1979}, {"B200", 8000, 2250, 4500}};

// A weight of a linear layer, [rows, cols] = [outputs, inputs].
struct matrix {
  std::uint64_t rows, cols;
};

std::vector<matrix> matrices_of_a_layer(const lab::model_shape& m) {
  const std::uint64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  std::vector<matrix> all = {{q, m.hidden}, {kv, m.hidden}, {kv, m.hidden}, {m.hidden, q}};
  all.push_back({m.intermediate, m.hidden});
  if (m.gated_mlp) all.push_back({m.intermediate, m.hidden});
  all.push_back({m.hidden, m.intermediate});
  return all;
}

// How many values of each kind a model has.
struct parameters {
  std::uint64_t linear = 0;     // the matrices of the layers
  std::uint64_t embedding = 0;  // the table that tokens are looked up in
  std::uint64_t head = 0;       // the output head, 0 where it is the table
  std::uint64_t small = 0;      // norms and biases
  std::uint64_t all() const { return count_sum(count_sum(linear, embedding), count_sum(head, small)); }
};

parameters count_parameters(const lab::model_shape& m) {
  parameters p;
  for (const matrix& w : matrices_of_a_layer(m)) p.linear = count_sum(p.linear, count_product(w.rows, w.cols));
  p.linear = count_product(p.linear, m.layers);
  p.embedding = count_product(m.vocabulary, m.hidden);
  p.head = m.tied_embeddings ? 0 : p.embedding;
  std::uint64_t small = m.norms_per_layer * m.hidden;
  if (m.head_norms) small += 2 * m.head_dim;
  if (m.qkv_bias) small += (m.heads + 2 * m.kv_heads) * m.head_dim;
  if (m.output_bias) small += m.hidden;
  if (m.mlp_bias) small += (m.gated_mlp ? 2 : 1) * m.intermediate + m.hidden;
  p.small = count_sum(count_product(small, m.layers), m.hidden);
  return p;
}

// What is in FP8; the rest is in bf16.
struct precision {
  const char* name;
  const char* key;  // in the CSV file
  bool weights, kv;
};
const precision precisions[] = {{"bf16", "bf16", false, false},
                                {"FP8 weights", "fp8_weights", true, false},
                                {"FP8 KV cache", "fp8_kv_cache", false, true},
                                {"both FP8", "both_fp8", true, true}};

std::string grouped(std::uint64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t i = s.size(); i > 3; i -= 3) s.insert(i - 3, ",");
  return s;
}
std::string grouped(std::uint64_t n, const char* noun) { return counted(grouped(n), noun); }

// A number of bytes in the unit that suits it.
std::string size(std::uint64_t bytes) {
  const double x = static_cast<double>(bytes);
  if (bytes < 1000) return text("%d B", static_cast<int>(bytes));
  if (bytes < 1000000) return text("%.1f kB", x / 1e3);
  if (bytes < 1000000000) return text("%.1f MB", x / 1e6);
  return text("%.1f GB", x / 1e9);
}

std::vector<std::string> precision_header(const std::string& first) {
  std::vector<std::string> header{first};
  for (const precision& p : precisions) header.push_back(p.name);
  return header;
}

// Refuses a count that saturated.
void countable(const std::string& name, std::uint64_t bytes) {
  if (bytes == octet::too_many_bytes) throw lab::failure(name + ": more bytes than 64 bits can count");
}

// The rows of one table of bytes, a cell for each precision, all in one unit; kept for the CSV file too.
class byte_table {
 public:
  byte_table(const std::string& title, bool small_model)
      : unit_(small_model ? 1e6 : 1e9), table_(precision_header(title + (small_model ? ", MB" : ", GB"))) {}

  template <class Bytes>
  void row(const std::string& name, const std::string& key, lab::csv& file, Bytes bytes) {
    std::vector<std::string> cells{name};
    for (const precision& p : precisions) {
      const std::uint64_t n = bytes(p);
      countable(name, n);
      cells.push_back(text("%.1f", static_cast<double>(n) / unit_));
      file.row({key, p.key, std::to_string(n), "bytes"});
    }
    table_.row(cells);
  }
  void print() const { table_.print(); }

 private:
  double unit_;
  lab::table table_;
};

std::vector<machine> machines_for(const std::string& bandwidth) {
  if (bandwidth.empty()) return known_machines;
  std::string upper;
  for (const char c : bandwidth) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const machine& m : known_machines)
    if (m.name == upper) return {m};
  char* end = nullptr;
  const double rate = std::strtod(bandwidth.c_str(), &end);
  if (end == bandwidth.c_str() || *end != '\0' || !(rate > 0) || rate > 1e9)
    throw lab::usage_error("--bandwidth: '" + bandwidth +
                           "' is neither a number of GB/s above 0, at most 1e9, nor H100, H200 or B200");
  return {{"given", rate, 0, 0}};
}

// The bytes of one model at one context and batch.
struct budget {
  lab::model_shape model;
  std::uint64_t context, batch;
  parameters p = count_parameters(model);
  octet::kv_shape cache{model.layers, model.kv_heads, model.head_dim, context, batch};

  std::uint64_t kv(const precision& q) const { return octet::kv_code_bytes(cache, q.kv ? 8 : 16); }

  // Everything in one precision, everything read.
  std::uint64_t weights(const precision& q) const { return count_product(p.all(), q.weights ? 1 : 2); }
  std::uint64_t read(const precision& q) const { return count_sum(weights(q), kv(q)); }

  // As checkpoints are: linear layers in FP8; embeddings, head, norms and biases in bf16. A step reads the head, tied
  // or not, but of the embedding table one row a sequence.
  std::uint64_t linear(const precision& q) const { return count_product(p.linear, q.weights ? 1 : 2); }
  std::uint64_t stored_weights(const precision& q) const {
    return count_sum(linear(q), count_product(count_sum(count_sum(p.embedding, p.head), p.small), 2));
  }
  std::uint64_t looked_up() const { return count_product(count_product(batch, model.hidden), 2); }
  std::uint64_t read_as_stored(const precision& q) const {
    const std::uint64_t head_and_small = count_product(count_sum(p.embedding, p.small), 2);
    return count_sum(count_sum(linear(q), head_and_small), count_sum(looked_up(), kv(q)));
  }
};

void print_model(const budget& b) {
  const lab::model_shape& m = b.model;
  std::printf("%s: %s; %s, %s on %s of %s, %s embeddings.\n", m.name.c_str(), grouped(b.p.all(), "parameter").c_str(),
              grouped(m.layers, "layer").c_str(), grouped(m.heads, "query head").c_str(),
              grouped(m.kv_heads, "KV head").c_str(), grouped(m.head_dim).c_str(),
              m.tied_embeddings ? "tied" : "separate");
  std::printf("Serving %s of %s. GB and MB are decimal.\n", grouped(b.batch, "sequence").c_str(),
              grouped(b.context, "token").c_str());
  for (const std::string& note : m.notes) std::printf("Note: %s.\n", note.c_str());
  if (m.longest_context != 0 && b.context > m.longest_context)
    std::printf("Note: the model was made for %s of context.\n", grouped(m.longest_context, "token").c_str());
}

void print_bytes(const budget& b, lab::csv& file) {
  const bool small_model = b.read(precisions[0]) < 10000000000u;
  byte_table plain("Everything in one precision", small_model);
  plain.row("weights", "weights", file, [&](const precision& q) { return b.weights(q); });
  plain.row("KV cache", "kv_cache", file, [&](const precision& q) { return b.kv(q); });
  plain.row("read per decode step", "read_per_step", file, [&](const precision& q) { return b.read(q); });
  std::printf("\n");
  plain.print();

  std::printf(
      "\nFiner: checkpoints leave embeddings, head, norms and biases in bf16. A step reads %s,\n"
      "but of the embedding table only one row for each sequence (%s).\n\n",
      b.model.tied_embeddings ? "the table as the head" : "the head", size(b.looked_up()).c_str());
  byte_table finer("As checkpoints are", small_model);
  finer.row("weights", "weights_as_stored", file, [&](const precision& q) { return b.stored_weights(q); });
  finer.row("KV cache", "kv_cache_as_stored", file, [&](const precision& q) { return b.kv(q); });
  finer.row("read per decode step", "read_per_step_as_stored", file,
            [&](const precision& q) { return b.read_as_stored(q); });
  finer.print();
}

// A step takes at least the time its bytes take.
void print_ceilings(const budget& b, const std::vector<machine>& machines, lab::csv& file) {
  std::printf(
      "\nThe ceiling: tokens per second of all sequences together, each at its full context, if a step took no longer\n"
      "than reading its bytes.\n\n");
  lab::table table(precision_header("bandwidth"));
  for (const machine& m : machines) {
    std::vector<std::string> cells{text("%-5s %.6g GB/s", m.name.c_str(), m.bandwidth)};
    for (const precision& q : precisions) {
      const double rate = static_cast<double>(b.batch) * m.bandwidth * 1e9 / static_cast<double>(b.read_as_stored(q));
      cells.push_back(rate >= 10 && rate < 1e15 ? grouped(static_cast<std::uint64_t>(rate)) : text("%.3g", rate));
      file.row({"ceiling_" + m.name, q.key, text("%.6g", rate), "tokens/s"});
    }
    table.row(cells);
  }
  table.print();
}

void print_scales(const budget& b, lab::csv& file) {
  lab::table table({"scales", "bytes", "of the FP8 codes"});
  const auto row = [&](const char* name, const char* key, std::uint64_t bytes, std::uint64_t codes) {
    countable(name, bytes);
    table.row({name, size(bytes), text("%.3f %%", 100 * static_cast<double>(bytes) / static_cast<double>(codes))});
    file.row({key, "", std::to_string(bytes), "bytes"});
  };
  const auto weights = [&](const char* name, const char* key, auto granularity, std::uint64_t bytes_each) {
    std::uint64_t bytes = 0;
    for (const matrix& w : matrices_of_a_layer(b.model))
      bytes = count_sum(bytes, octet::descale_bytes(granularity, static_cast<std::size_t>(w.rows),
                                                    static_cast<std::size_t>(w.cols), bytes_each));
    row(name, key, count_product(bytes, b.model.layers), b.p.linear);
  };
  const auto cache = [&](const char* name, const char* key, octet::kv_layout layout) {
    row(name, key, octet::kv_descale_bytes(b.cache, layout), octet::kv_code_bytes(b.cache));
  };
  weights("weights, one a tensor", "weight_scales_per_tensor", octet::per_tensor{}, 4);
  weights("weights, one an output channel", "weight_scales_per_channel", octet::per_channel{0}, 4);
  weights("weights, one a block of 128 x 128", "weight_scales_per_block_128x128", octet::per_block<128, 128>{}, 4);
  weights("weights, one a block of 1 x 32 (MX)", "weight_scales_per_block_1x32", octet::per_block<1, 32>{}, 1);
  cache("KV cache, one a tensor", "kv_scales_per_tensor", octet::kv_layout::per_tensor);
  cache("KV cache, one a head", "kv_scales_per_head", octet::kv_layout::per_head);
  cache("KV cache, one a channel", "kv_scales_per_channel", octet::kv_layout::per_channel);
  cache("KV cache, one a token and head", "kv_scales_per_token_head", octet::kv_layout::per_token_head);
  std::printf("\nScales come on top, four bytes each (MX: one).\n\n");
  table.print();
}

// Where bytes are not the measure.
void print_limits(const budget& b, const std::vector<machine>& machines) {
  const machine& m = machines.front().bf16_tflops > 0 ? machines.front() : known_machines.front();
  const auto time = [](double seconds) {
    return seconds < 1 ? text("%.3g ms", seconds * 1e3) : text("%.3g s", seconds);
  };
  // A multiplication and an addition for each weight; and for each value of the heads two of both, on the mean over a
  // causal prompt half of its tokens times.
  const double context = static_cast<double>(b.context);
  const double heads = static_cast<double>(b.model.layers) * static_cast<double>(b.model.heads * b.model.head_dim);
  const double tflop = (2 * static_cast<double>(b.p.linear) + 2 * heads * context) * context / 1e12;
  const double reading = static_cast<double>(b.stored_weights(precisions[0])) / (m.bandwidth * 1e9);
  const bool bound = tflop / m.bf16_tflops > reading;
  std::printf(
      "\nWhere this argument fails:\n"
      "- Prefill is bound by arithmetic%s. One prompt of %s is %.3g Tflop:\n"
      "  %s in bf16 and %s in FP8 at the peak of the %s, which reads the bf16 weights in %s. There FP8\n"
      "  helps by faster tensor cores, not by fewer bytes.\n",
      bound ? "" : " once prompts are long", grouped(b.context, "token").c_str(), tflop,
      time(tflop / m.bf16_tflops).c_str(), time(tflop / m.fp8_tflops).c_str(), m.name.c_str(), time(reading).c_str());
  std::printf(
      "- Small models and short contexts: at %.6g GB/s the bytes of a step in FP8 take %s. Towards a millisecond\n"
      "  and below, kernel launches and synchronisation set the pace, and half the bytes change little.\n",
      machines.front().bandwidth,
      time(static_cast<double>(b.read_as_stored(precisions[3])) / (machines.front().bandwidth * 1e9)).c_str());
  std::printf(
      "- Machines without FP8 units store FP8 and compute in bf16 or float: the bytes halve, but every code has to be\n"
      "  decoded on its way, and prefill gains nothing.\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "The bytes a language model stores and reads to serve, in bf16 and in FP8, and the speed they allow at best.",
      "serving_budget");
  std::string config, bandwidth, csv_path;
  std::uint32_t context = 8192, batch = 32;
  auto* const json = app.add_option("--config", config, "a Hugging Face config.json; without it, Llama-3-8B");
  auto* const tokens = app.add_option("--context", context, "tokens in the KV cache of each sequence (8192)");
  auto* const sequences = app.add_option("--batch", batch, "sequences decoded together (32)");
  auto* const rate =
      app.add_option("--bandwidth", bandwidth, "memory bandwidth in GB/s, or H100, H200, B200; without it, all three");
  auto* const csv = app.add_option("--csv", csv_path, "write the numbers to this file");
  for (auto* const path : {json, csv}) path->type_name("FILE")->check(lab::not_empty);
  for (auto* const number : {tokens, sequences}) number->type_name("N")->check(lab::at_least_one);
  rate->type_name("GB/S")->check(lab::not_empty);
  app.footer(
      "Examples:\n"
      "  serving_budget --csv bytes.csv\n"
      "  serving_budget --config config.json --context 131072 --batch 4 --bandwidth H200");
  return lab::run(app, argc, argv, [&] {
    const std::vector<machine> machines = machines_for(bandwidth);
    lab::expect_outputs({csv_path}, {config});
    const budget b{config.empty() ? lab::llama_3_8b() : lab::read_model_config(config), context, batch};
    lab::csv file({"quantity", "precision", "value", "unit"});
    file.row({"parameters", "", std::to_string(b.p.all()), "count"});
    print_model(b);
    print_bytes(b, file);
    print_ceilings(b, machines, file);
    print_scales(b, file);
    print_limits(b, machines);
    if (!csv_path.empty()) lab::write_whole(csv_path, file.str());
  });
}
