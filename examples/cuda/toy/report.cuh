// What the program prints: the table of tensors, the errors, the bytes, the times, and what they say.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "lab/csv.hpp"
#include "lab/table.hpp"
#include "model.cuh"
#include "octet/footprint.hpp"
#include "witness.cuh"

namespace toy {

// The table of what was quantized; the same in the csv. Returns how many codes and descales differ from the host's.
inline std::size_t print_tensors(const std::vector<sighting>& seen, lab::csv& file) {
  lab::table table({"tensor", "values", "amax", "descale", "flushed", "clipped", "error", "differing"});
  std::size_t differing = 0;
  for (const sighting& s : seen) {
    const double flushed = 100.0 * static_cast<double>(s.lost.flushed) / static_cast<double>(s.lost.count);
    std::string descale = lab::text("%.3g", s.least_descale);
    if (s.least_descale != s.greatest_descale) descale += lab::text(" to %.3g", s.greatest_descale);
    table.row({s.name, lab::text("%zu", s.lost.count), lab::text("%.4g", s.amax), descale,
               lab::text("%.2f %%", flushed), lab::text("%zu", s.lost.clipped),
               lab::text("%.2f %%", 100 * s.lost.mean_relative_error()), lab::text("%zu", s.differing)});
    file.row({"tensor", s.name, "amax", lab::csv_number(s.amax)});
    file.row({"tensor", s.name, "least_descale", lab::csv_number(s.least_descale)});
    file.row({"tensor", s.name, "greatest_descale", lab::csv_number(s.greatest_descale)});
    file.row({"tensor", s.name, "flushed_percent", lab::csv_number(flushed)});
    file.row({"tensor", s.name, "clipped", lab::text("%zu", s.lost.clipped)});
    file.row({"tensor", s.name, "error_percent", lab::csv_number(100 * s.lost.mean_relative_error())});
    file.row({"tensor", s.name, "differing", lab::text("%zu", s.differing)});
    differing += s.differing;
  }
  table.print();
  return differing;
}

// |a - b| / |b| over whole tensors, in percent.
inline double relative_error(const std::vector<bf16>& a, const std::vector<bf16>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(__bfloat162float(a[i])), y = static_cast<double>(__bfloat162float(b[i]));
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return 100 * std::sqrt(difference / size);
}

// What a step of decoding reads at least: every weight and its descales, and the keys and values of the whole context.
struct step_bytes {
  std::uint64_t weights, cache;
  std::uint64_t all() const { return weights + cache; }
};
inline step_bytes bytes_of_step(const sizes& s, bool in_fp8, bool each_row) {
  step_bytes b{0, octet::kv_code_bytes({s.layers, s.kv_heads, s.head_dim(), s.context, s.batch}, in_fp8 ? 8 : 16)};
  for (const linear_shape& w : shapes_of(s))
    b.weights += s.layers * (w.outputs * w.inputs * (in_fp8 ? 1 : 2) + (in_fp8 ? (each_row ? w.outputs : 1) * 4 : 0));
  return b;
}

// One run: its name, the errors of its outputs against bfloat16 in percent, and its times in milliseconds (0: none taken).
struct run_result {
  std::string name;
  double prefill_error, decode_error, prefill_time, decode_time;
};

inline void print_runs(const std::vector<run_result>& runs, bool timed, lab::csv& file) {
  std::vector<std::string> header{"run", "error of prefill", "of decode"};
  if (timed) header.insert(header.end(), {"prefill, ms", "of bfloat16", "decode step, ms", "of bfloat16"});
  lab::table table(header);
  for (const run_result& r : runs) {
    const bool is_reference = &r == &runs.front();
    const auto error = [&](double percent) { return is_reference ? std::string("-") : lab::text("%.2f %%", percent); };
    std::vector<std::string> cells{r.name, error(r.prefill_error), error(r.decode_error)};
    file.row({"run", r.name, "prefill_error_percent", lab::csv_number(r.prefill_error)});
    file.row({"run", r.name, "decode_error_percent", lab::csv_number(r.decode_error)});
    if (timed) {
      for (const auto& time :
           {std::pair(r.prefill_time, runs[0].prefill_time), std::pair(r.decode_time, runs[0].decode_time)}) {
        cells.push_back(lab::text("%.4f", time.first));
        cells.push_back(lab::text("%.2f", time.first / time.second));
      }
      file.row({"run", r.name, "prefill_ms", lab::csv_number(r.prefill_time)});
      file.row({"run", r.name, "decode_ms", lab::csv_number(r.decode_time)});
    }
    table.row(cells);
  }
  table.print();
}

inline std::string amount(std::uint64_t bytes) {
  const double x = static_cast<double>(bytes);
  return x < 1e9 ? lab::text("%.4g MB", x / 1e6) : lab::text("%.4g GB", x / 1e9);
}

inline void print_bytes(const step_bytes& wide, const step_bytes& narrow, lab::csv& file) {
  lab::table table({"a decode step reads", "weights", "keys and values", "together"});
  for (const auto& [name, b] : {std::pair("in bfloat16", wide), std::pair("in FP8", narrow)}) {
    table.row({name, amount(b.weights), amount(b.cache), amount(b.all())});
    file.row({"bytes", name, "weights", lab::text("%llu", static_cast<unsigned long long>(b.weights))});
    file.row({"bytes", name, "cache", lab::text("%llu", static_cast<unsigned long long>(b.cache))});
  }
  table.print();
}

// What the numbers mean, and when FP8 wins. l2: the bytes of the GPU's cache; the times only where some were taken.
inline void print_meaning(const step_bytes& wide, const step_bytes& narrow, std::uint64_t l2,
                          const run_result& reference, const run_result& fp8, bool timed) {
  const double bytes = static_cast<double>(narrow.all()) / static_cast<double>(wide.all());
  std::printf(
      R"(Error of a tensor: the mean of |x' - x| / |x| over its values. Flushed: nonzero values whose code is zero.
Clipped: values beyond the largest code. Differing: codes and descales that octet::quantize_into on the host has
otherwise. Error of a run: |a - b| / |b| over the states behind the last norm, b in bfloat16. The weights are random
and no training has made them bear it: it shows that the arithmetic is right, not what FP8 costs a model (examples/run
quality does). Fast accumulation leaves sums longer in the tensor cores, which hold fewer bits than a float.

When FP8 wins: a decode step reads all weights and the whole cache once and does little with each byte, so that memory
is what it waits for, and in FP8 it reads %.2f of the bytes. Prefill waits for arithmetic, and tensor cores multiply
FP8 twice as fast.
When it does not: with a small batch and context the launches take longer than the bytes, and FP8 has at least four
more a layer, which quantize what the products take. What fits in the GPU's L2 cache (%s here) is hardly read from
memory at all. Norms, rotations, gate, softmax and the prompts' attention are bfloat16 in both runs and gain nothing:
the longer the prompts, the larger their part of prefill.
)",
      bytes, amount(l2).c_str());
  if (!timed) {
    std::printf("Not timed: times of small sizes, or an emulator's, say nothing about a GPU's.\n");
    return;
  }
  const double ratio = fp8.decode_time / reference.decode_time;
  std::printf(
      "Here a decode step in FP8 takes %.2f of the time in bfloat16, and reads %.0f GB/s where bfloat16 reads "
      "%.0f.%s%s\n",
      ratio, static_cast<double>(narrow.all()) / fp8.decode_time / 1e6,
      static_cast<double>(wide.all()) / reference.decode_time / 1e6,
      narrow.all() < l2 ? " All of it fits in the L2 cache: this measures no memory." : "",
      ratio > 0.9 ? " FP8 hardly pays here: the step is too small to be bound by memory." : "");
}

}  // namespace toy
