// A toy transformer on a GPU, in FP8 against bfloat16: every tensor checked, the output's error, bytes and latencies.
// SPDX-License-Identifier: MIT
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "cuda/toy/decoder.cuh"
#include "cuda/toy/report.cuh"
#include "lab/checks.hpp"
#include "lab/program.hpp"
#include "lab/whole_file.hpp"

namespace {

using toy::in_bfloat16;
using toy::in_fp8;

constexpr int no_device = 3;  // the exit code

struct request {
  std::uint64_t seed = 1;
  std::string scales, csv;
  toy::sizes given{};    // zero where none was given
  bool untimed = false;  // by --emulate
};

// Llama-3-8B's sizes, two layers of it; and what an emulator does in seconds.
constexpr toy::sizes real_sizes{2, 4096, 32, 8, 14336, 32, 8192, 512}, small_sizes{2, 256, 4, 2, 512, 3, 70, 17};

using size_of_model = std::size_t toy::sizes::*;
constexpr struct {
  const char* option;
  size_of_model member;
  const char* what;
} numbers[] = {{"--layers", &toy::sizes::layers, "layers"},
               {"--hidden", &toy::sizes::hidden, "width of the states; 64 or 128 for each head"},
               {"--heads", &toy::sizes::heads, "query heads"},
               {"--kv-heads", &toy::sizes::kv_heads, "heads of keys and values, which divide the query heads"},
               {"--ffn", &toy::sizes::ffn, "width of the MLP, a multiple of 16"},
               {"--batch", &toy::sizes::batch, "sequences"},
               {"--context", &toy::sizes::context, "tokens that a decode step attends to, its own among them"},
               {"--prompt", &toy::sizes::prompt, "tokens of each prompt; repeated until the context is full"}};

// What cannot be computed is said before anything is.
void require_sizes(const toy::sizes& s) {
  const auto expect = [](bool holds, const std::string& what) {
    if (!holds) throw lab::usage_error(what);
  };
  expect(s.hidden % s.heads == 0 && (s.head_dim() == 64 || s.head_dim() == 128),
         lab::text("--hidden: %zu over --heads %zu is not 64 or 128 values a head", s.hidden, s.heads));
  expect(s.heads % s.kv_heads == 0, lab::text("--kv-heads: %zu do not divide --heads %zu", s.kv_heads, s.heads));
  expect(s.ffn % 16 == 0, lab::text("--ffn: %zu is no multiple of 16, as FP8 products need", s.ffn));
  expect(s.prompt < s.context,
         lab::text("--prompt: %zu leaves no room for a new token in --context %zu", s.prompt, s.context));
  expect(s.layers <= 1000, lab::text("--layers: %zu is more than 1000", s.layers));
  expect(s.hidden <= 65536 && s.ffn <= 1048576, "--hidden: more than 65536, or --ffn more than 1048576");
  expect(s.context <= 16777216 && s.batch <= 65535 && s.batch * s.context <= 1073741824,
         "--batch: more than 65535, --context more than 16777216, or together more than 2^30 tokens");
  expect(s.heads * s.prompt <= 0x7FFFFFFF, "--prompt: too long");
}

toy::sizes sizes_of(const request& r, bool small) {
  toy::sizes s = small ? small_sizes : real_sizes;
  for (const auto& n : numbers)
    if (r.given.*n.member != 0) s.*n.member = r.given.*n.member;
  require_sizes(s);
  return s;
}

cudaDeviceProp require_device() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess)
    throw lab::failure(std::string("no usable CUDA device: ") + cudaGetErrorString(error), no_device);
  if (devices == 0) throw lab::failure("no usable CUDA device: there is none", no_device);
  cudaDeviceProp found;
  if (const cudaError_t refused = cudaGetDeviceProperties(&found, 0); refused != cudaSuccess)
    throw lab::failure(std::string("no usable CUDA device: ") + cudaGetErrorString(refused), no_device);
  if (10 * found.major + found.minor < 89)
    throw lab::failure(lab::text("no usable CUDA device: %s has compute capability %d.%d, and FP8 needs 8.9",
                                 found.name, found.major, found.minor),
                       no_device);
  return found;
}

toy::sharing who_shares(const request& r, const cudaDeviceProp& device) {
  const bool rows_there = device.major == 9 && device.minor == 0;
  if (r.scales == "rows" && !rows_there)
    throw lab::failure(lab::text("--scales rows: cuBLASLt scales rows on compute capability 9.0 only; this is %d.%d",
                                 device.major, device.minor));
  return r.scales == "tensor" || !rows_there ? toy::sharing::tensor : toy::sharing::rows;
}

// The descales of a cache are there before its tokens are. As a checkpoint's they come from a calibration: the largest
// magnitude in each head of the run in bfloat16, and a binade above it for tokens that are larger.
class calibration {
  const toy::machine& on_;
  toy::sizes s_;

 public:
  calibration(const toy::machine& on, const toy::sizes& s) : on_(on), s_(s) {}
  std::vector<octet::descale> descales;  // [layers, keys and values, kv_heads]

  void observe(const toy::appended<in_bfloat16>& a) {
    octet::scale_rule rule;
    rule.margin = 1;
    const std::vector<toy::bf16> rows = on_.on.download(a.rows.rows, a.rows.tokens, a.rows.width, a.rows.row_stride);
    for (std::size_t head = 0; head < s_.kv_heads; ++head) {
      float amax = 0;
      for (std::size_t row = 0; row < a.rows.tokens; ++row)
        amax = std::max(amax, octet::amax(&rows[row * a.rows.width + head * s_.head_dim()], s_.head_dim()));
      descales.push_back(octet::scale_of<octet::e4m3>(amax, rule).stored);
    }
  }
};

template <class P>
void take_times(const toy::machine& on, const toy::decoder<P>& decoder, toy::pass<P>& prefill, toy::pass<P>& decode,
                bool timed, toy::run_result& result) {
  const toy::graph prompts(on.on, [&] { decoder.forward(prefill); });
  const toy::graph step(on.on, [&] { decoder.forward(decode); });
  const std::vector<toy::bf16> first_prefill = prefill.output(on.on), first_decode = decode.output(on.on);
  // NaN everywhere: what a replay leaves out is then as far off as can be.
  for (const toy::memory<toy::bf16>& output : {std::cref(prefill.normed), std::cref(decode.normed)})
    toy::check(cudaMemsetAsync(output.data(), 0xFF, output.size() * sizeof(toy::bf16), on.on), "clearing an output");
  prompts.start(on.on);
  step.start(on.on);
  for (const double difference : {toy::relative_error(prefill.output(on.on), first_prefill),
                                  toy::relative_error(decode.output(on.on), first_decode)})
    if (!(difference < 0.1))
      throw lab::failure(
          lab::text("%s: a graph's replay is %.3g %% off the first pass", result.name.c_str(), difference));
  if (!timed) return;
  result.prefill_time = toy::median_time(prompts, on.on, 21);
  result.decode_time = toy::median_time(step, on.on, 201);
}

struct outputs {
  std::vector<toy::bf16> prefill, decode;
};

void run(const request& r) {
  const cudaDeviceProp device = require_device();
  const bool emulated = toy::is_emulated(device), timed = !emulated && !r.untimed;
  const toy::sharing shared = who_shares(r, device);
  const toy::sizes s = sizes_of(r, !timed);
  toy::check(cudaSetDevice(0), "the GPU");
  const toy::machine on{{}, {}, device.multiProcessorCount};
  std::printf("%s%s, compute capability %d.%d, %d multiprocessors.\n",
              timed      ? ""
              : emulated ? "Emulated, not timed: "
                         : "Small sizes, not timed: ",
              device.name, device.major, device.minor, device.multiProcessorCount);
  std::printf(
      R"(A decoder of %zu layers: hidden %zu, %zu query heads on %zu key heads of %zu, MLP of %zu; random weights, seed %llu.
%zu sequences: prompts of %zu tokens, then a step of decoding with %zu tokens of context.

)",
      s.layers, s.hidden, s.heads, s.kv_heads, s.head_dim(), s.ffn, static_cast<unsigned long long>(r.seed), s.batch,
      s.prompt, s.context);

  const toy::model model = toy::draw_model(on.on, s, r.seed);
  lab::csv file({"section", "name", "quantity", "value"});
  std::vector<toy::run_result> results;
  outputs reference;
  calibration calibrated(on, s);
  {
    const toy::decoder<in_bfloat16> decoder(on, model, {shared, nullptr}, {});
    auto prefill = decoder.prefill(false), decode = decoder.decode(false);
    const toy::watching<in_bfloat16> calibrate{nullptr, [&](const auto& a) { calibrated.observe(a); }};
    decoder.forward(prefill, &calibrate);
    decoder.forward(decode);
    reference = {prefill.output(on.on), decode.output(on.on)};
    results.push_back({"bfloat16", 0, 0, 0, 0});
    take_times(on, decoder, prefill, decode, timed, results.back());
  }

  toy::witness witness(on.on);
  const toy::decoder<in_fp8> decoder(on, model, {shared, &witness}, calibrated.descales);
  const auto compare_cache = [&](const toy::appended<in_fp8>& a) {
    const auto first =
        calibrated.descales.begin() + static_cast<std::ptrdiff_t>((2 * a.layer + (a.are_keys ? 0 : 1)) * s.kv_heads);
    witness.cached(lab::text("layer %zu %s", a.layer, a.are_keys ? "keys" : "values"),
                   octet::cuda::per_head(s.head_dim()), {first, first + static_cast<std::ptrdiff_t>(s.kv_heads)},
                   a.rows.rows, a.rows.tokens, a.rows.width, a.rows.row_stride, a.cache, a.slots);
  };
  const toy::watching<in_fp8> everything{&witness, compare_cache};
  for (const bool fast : {false, true}) {
    auto prefill = decoder.prefill(fast), decode = decoder.decode(fast);
    decoder.forward(prefill, fast ? nullptr : &everything);
    decoder.forward(decode, fast ? nullptr : &everything);
    results.push_back({fast ? "FP8 with fast accumulation" : "FP8",
                       toy::relative_error(prefill.output(on.on), reference.prefill),
                       toy::relative_error(decode.output(on.on), reference.decode), 0, 0});
    take_times(on, decoder, prefill, decode, timed, results.back());
  }

  const std::size_t differing = toy::print_tensors(witness.seen(), file);
  std::printf("\n");
  toy::print_runs(results, timed, file);
  std::printf("\n");
  const toy::step_bytes wide = toy::bytes_of_step(s, false, false),
                        narrow = toy::bytes_of_step(s, true, shared == toy::sharing::rows);
  toy::print_bytes(wide, narrow, file);
  std::printf("\n");
  toy::print_meaning(wide, narrow, static_cast<std::uint64_t>(device.l2CacheSize), results[0], results[1], timed);
  if (!r.csv.empty()) lab::write_whole(r.csv, file.str());
  for (const toy::run_result& result : results)
    if (!std::isfinite(result.prefill_error) || !std::isfinite(result.decode_error))
      throw lab::failure(result.name + ": the output is not finite");
  if (differing != 0)
    throw lab::failure(lab::text("%zu codes or descales are not those of octet::quantize_into on the host", differing));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "A decoder with random weights on a GPU, in FP8 and in bfloat16: what is quantized and what that loses, each\n"
      "code checked against the host's, the error of the output, the bytes a decode step reads, and the latencies.",
      "toy_transformer");
  request r;
  for (const auto& n : numbers)
    app.add_option(n.option, r.given.*n.member,
                   lab::text("%s (%zu; emulated: %zu)", n.what, real_sizes.*n.member, small_sizes.*n.member))
        ->type_name("N")
        ->check(lab::at_least_one);
  app.add_option("--seed", r.seed, "of the random weights and states (1)")->type_name("N")->check(lab::whole_number);
  app.add_option("--scales", r.scales,
                 "who shares a scale in weights and activations: rows (output channels and tokens; compute capability\n"
                 "9.0 only, and the default there) or tensor")
      ->check(CLI::IsMember({"rows", "tensor"}));
  app.add_option("--csv", r.csv, "write the numbers to this file")->type_name("FILE")->check(lab::not_empty);
  app.add_flag("--emulate", r.untimed,
               "small sizes and no latencies, as for an emulator of a GPU; also taken where the device says it is one");
  app.footer(
      "Exit code: 0; 1 if a code differs from the host's or something fails; 2 for wrong arguments; 3 if there is no\n"
      "usable CUDA device (compute capability 8.9 or later).\n"
      "Examples:\n"
      "  toy_transformer --csv latencies.csv\n"
      "  toy_transformer --batch 1 --context 1024");
  return lab::run(app, argc, argv, [&] {
    sizes_of(r, r.untimed);  // what is wrong with them is said before a device is looked for
    lab::expect_outputs({r.csv}, {});
    run(r);
  });
}
