// Why FP8 needs a scale: the underflow table.
// SPDX-License-Identifier: MIT
//
// c++ -std=c++17 -O2 -Iinclude -Iexamples examples/underflow.cpp -o underflow    (CLI11)
//
// An 8-bit float has few exponents. Activations and softmax outputs are often smaller than the smallest of them, and
// what is smaller becomes zero: not rounded, gone. One multiplication beforehand, by the tensor's scale, brings them
// back.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lab/checks.hpp"
#include "lab/draws.hpp"
#include "lab/program.hpp"
#include "lab/table.hpp"
#include "lab/tensor_file.hpp"
#include "lab/text.hpp"
#include "lab/underflow/outcome.hpp"
#include "lab/underflow/sweep.hpp"
#include "lab/whole_file.hpp"

namespace {

using lab::counted;
using lab::ledger;
using lab::matrix;
using lab::outcome;
using lab::text;
using lab::whole;
using lab::with_scales;
using lab::without_scale;
using octet::e4m3;
using octet::e5m2;

struct data_set {
  std::string name;
  std::vector<float> values;
};

// The four rows.
void print_four_rows(const std::vector<data_set>& sets, ledger& numbers) {
  lab::table table({"activations", "scale to E4M3", "mean relative error", "flushed to zero"});
  for (const data_set& set : sets) {
    const outcome plain = without_scale<e4m3>(whole(set.values));
    const outcome scaled = with_scales<e4m3>(whole(set.values), octet::per_tensor{});
    table.row({set.name, "none", error_of(plain), flushed_of(plain)});
    table.row({set.name, scale_of(scaled), error_of(scaled), flushed_of(scaled)});
    numbers.add("four rows", set.name, "e4m3", "no scale", plain);
    numbers.add("four rows", set.name, "e4m3", "per tensor", scaled);
  }
  table.print();
}

// A format with and without a scale, side by side.
template <class F>
void print_side_by_side(const char* section, const char* format, const std::vector<data_set>& sets, ledger& numbers) {
  lab::table table({"", "unscaled: error", "flushed", "SNR", "scaled by", "error", "flushed", "SNR"});
  for (const data_set& set : sets) {
    const outcome plain = without_scale<F>(whole(set.values));
    const outcome scaled = with_scales<F>(whole(set.values), octet::per_tensor{});
    table.row({set.name, error_of(plain), flushed_of(plain), snr_of(plain), scale_of(scaled), error_of(scaled),
               flushed_of(scaled), snr_of(scaled)});
    numbers.add(section, set.name, format, "no scale", plain);
    numbers.add(section, set.name, format, "per tensor", scaled);
  }
  table.print();
}

// One tensor under the granularities that its shape allows; a single row allows one scale only.
template <class F>
void add_granularities(lab::table& table, const char* section, const std::string& data, const char* name,
                       const char* format, matrix values, bool every, ledger& numbers) {
  const auto add = [&](const char* granularity, const outcome& o) {
    table.row(
        {std::string(name) + ", " + granularity, scale_of(o), error_of(o), flushed_of(o), clipped_of(o), snr_of(o)});
    numbers.add(section, data, format, granularity, o);
  };
  add("no scale", without_scale<F>(values));
  add("per tensor", with_scales<F>(values, octet::per_tensor{}));
  if (values.rows == 1) return;
  add("per row", with_scales<F>(values, octet::per_channel{0}));
  if (!every) return;
  add("per column", with_scales<F>(values, octet::per_channel{1}));
  add("per block of 128 x 128", with_scales<F>(values, octet::per_block<128, 128>{}));
}

void print_granularities(const char* section, const std::string& data, matrix values, bool every, ledger& numbers) {
  lab::table table({"", "scale", "mean relative error", "flushed", "clipped", "SNR"});
  add_granularities<e4m3>(table, section, data, "E4M3", "e4m3", values, every, numbers);
  add_granularities<e5m2>(table, section, data, "E5M2", "e5m2", values, every, numbers);
  table.print();
}

// The tables of generated data. Returns the picture where one is wanted.
std::string tell(std::uint64_t seed, bool draw, ledger& numbers) {
  constexpr std::size_t side = 512, n = side * side;
  const std::vector<data_set> activations = {{"typical, about 1.0", lab::octave({seed, 0}, 1.0, n)},
                                             {"small, about 3e-4", lab::octave({seed, 1}, 3e-4, n)}};
  const std::vector<std::int64_t> normal = lab::normals({seed, 2}, n);
  std::vector<data_set> practice = {{"normal values", lab::to_floats(normal)}};
  for (const std::size_t keys : {512u, 2048u, 8192u, 32768u})
    practice.push_back({text("softmax over %zu keys", keys), lab::softmax(normal, keys)});
  practice.push_back({"rare expert, normal / 1000", lab::to_floats(normal, 1.0 / 1000)});

  std::printf("Why FP8 needs a scale\n\n");
  print_four_rows(activations, numbers);
  std::printf(
      "\nThe least value of E4M3 is 2^-9, and half of that rounds to zero: without a scale nothing up to 2^-10\n"
      "(0.00098) survives. One factor for the tensor, 448 over its largest magnitude, makes small values as good as\n"
      "any.\n\n"
      "Data that lives near that floor in practice, in E4M3:\n\n");
  print_side_by_side<e4m3>("practice", "e4m3", practice, numbers);
  std::printf("\nE5M2 has the wider range (its floor is 2^-17) and half the precision:\n\n");
  std::vector<data_set> all = activations;
  all.insert(all.end(), practice.begin(), practice.end());
  print_side_by_side<e5m2>("practice", "e5m2", all, numbers);

  // Row 0 is the loud channel; what counts is what its scale does to the others.
  std::vector<float> weight = lab::to_floats(normal);
  for (std::size_t i = 0; i < side; ++i) weight[i] *= 300;
  std::printf("\nNormal values, 512 x 512, one channel (a row) 300 times the others:\n\n");
  print_granularities("loud channel", "one channel 300 times the others", {weight.data(), side, side, side}, false,
                      numbers);

  std::printf(
      "\nMean relative error by magnitude; a full column is 100 %%, an empty one 1 %%, logarithmic between:\n\n");
  const lab::sweep magnitudes({seed, 100}, numbers);
  magnitudes.print();
  std::printf(
      "\nAll tensors but the sweep's (8,192 a step) hold 2^18 values, drawn by Philox4x32-10 with seed %llu\n"
      "and integer arithmetic: the same numbers on every machine.\n"
      "Activations: magnitudes log-uniform over the octave figure / sqrt(2) to figure * sqrt(2), random signs.\n"
      "Normal: mean 0, deviation 1. Softmax: those normal values as logits, a row of so many keys for each query.\n"
      "Rare expert: the output of an expert that a sparse mixture seldom uses, small by the factor named.\n%s",
      static_cast<unsigned long long>(seed), lab::definitions);
  return draw ? magnitudes.drawn(seed) : std::string();
}

// The same table for a tensor of the user's.
void tell_file(const std::string& path, matrix values, ledger& numbers) {
  float amax = 0, least = std::numeric_limits<float>::infinity();
  std::size_t zeros = 0, not_finite = 0;
  const std::size_t count = values.rows * values.cols;
  for (std::size_t i = 0; i < count; ++i) {
    const float magnitude = std::fabs(values.data[i]);
    if (!std::isfinite(magnitude)) {
      ++not_finite;
    } else if (magnitude == 0) {
      ++zeros;
    } else {
      if (magnitude > amax) amax = magnitude;
      if (magnitude < least) least = magnitude;
    }
  }
  std::printf("%s: %s", path.c_str(), counted(count, "value").c_str());
  if (values.rows > 1) std::printf(" as %zu x %zu", values.rows, values.cols);
  if (amax > 0) std::printf(", magnitudes %.4g to %.4g", static_cast<double>(least), static_cast<double>(amax));
  std::printf(", %s, %zu NaN or infinite\n\n", counted(zeros, "zero").c_str(), not_finite);
  print_granularities("file", path, values, true, numbers);
  std::printf("\n%s", lab::definitions);
}

// What the command line asks for. A size of 0: not given.
struct request {
  std::string file, dtype = "f32", csv, svg;
  std::uint64_t seed = 1, rows = 0, cols = 0, skip = 0, count = 0;
};

void answer(const request& r) {
  lab::expect_outputs({r.csv, r.svg}, {r.file});

  ledger numbers;
  std::string drawing;
  if (r.file.empty()) {
    drawing = tell(r.seed, !r.svg.empty(), numbers);
  } else {
    const std::vector<float> values = lab::read_floats(r.file, lab::dtype_named(r.dtype), r.skip, r.count);
    const std::size_t n = values.size();
    if (r.rows != 0 && (n % r.rows != 0 || n / r.rows != r.cols))
      throw lab::failure(r.file + ": is no " + std::to_string(r.rows) + " x " + std::to_string(r.cols) + ": holds " +
                         counted(n, "float"));
    const std::size_t rows = r.rows != 0 ? static_cast<std::size_t>(r.rows) : 1;
    tell_file(r.file, {values.data(), rows, n / rows}, numbers);
  }
  if (!r.csv.empty()) lab::write_whole(r.csv, numbers.str());
  if (!r.svg.empty()) lab::write_whole(r.svg, drawing);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Why FP8 needs a scale: what becomes of typical and of small values in E4M3 and E5M2, with and without one.",
      "underflow");
  request r;
  auto* const file = app.add_option("--file", r.file, "the table for this tensor: raw little-endian floats");
  auto* const dtype = app.add_option("--dtype", r.dtype, "what they are: f32, bf16 or f16 (f32)");
  auto* const rows = app.add_option("--rows", r.rows, "rows of that tensor, for a scale a row, a column, a block");
  auto* const cols = app.add_option("--cols", r.cols, "its columns");
  auto* const skip = app.add_option("--skip", r.skip, "bytes at the start of the file that are no floats");
  auto* const count = app.add_option("--count", r.count, "how many floats to take from there; all if not given");
  auto* const seed = app.add_option("--seed", r.seed, "seed of the generated data (1)");
  auto* const svg = app.add_option("--svg", r.svg, "draw the errors over the magnitude of the data to this file");
  auto* const csv = app.add_option("--csv", r.csv, "write all numbers to this file");
  for (auto* const path : {file, svg, csv}) path->type_name("FILE")->check(lab::not_empty);
  for (auto* const number : {rows, cols, count}) number->type_name("N")->check(lab::at_least_one)->needs(file);
  skip->type_name("BYTES")->check(lab::whole_number)->needs(file);
  seed->type_name("N")->check(lab::whole_number)->excludes(file);
  dtype->type_name("TYPE")->transform(CLI::IsMember({"f32", "bf16", "f16"}, CLI::ignore_case))->needs(file);
  svg->excludes(file);
  rows->needs(cols);
  cols->needs(rows);
  app.footer(
      "Examples:\n"
      "  underflow --csv numbers.csv\n"
      "  underflow --svg errors.svg\n"
      "  underflow --file weight.bin --dtype bf16 --rows 4096 --cols 14336");
  return lab::run(app, argc, argv, [&] { answer(r); });
}
