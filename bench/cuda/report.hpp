// What was measured, as Markdown tables for people and as JSON for programs; emulated runs have no times.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "card.hpp"
#include "lab/text.hpp"
#include "race.hpp"

namespace cuda_bench {

struct result {
  std::string name, shape, mark_name;
  double goal, bytes, operations;
  outcome found;
  std::string failed, unsupported;  // why, where it did or is
  bool measured() const { return failed.empty() && unsupported.empty(); }
};

// timed: false where the times mean nothing, and none is shown.
struct session {
  card device;
  std::size_t moved;
  race_length length;
  bool timed;
};

namespace detail {

using lab::text;

// In JSON's quotes.
inline std::string quoted(const std::string& words) {
  std::string s = "\"";
  for (const char c : words)
    if (c == '"' || c == '\\')
      s += std::string("\\") + c;
    else
      s += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return s + '"';
}

inline std::string verdict(const result& r) {
  if (r.goal == 0) return "";
  return text("%.0f %%: ", 100 * r.goal) + (r.found.of_mark >= r.goal ? "met" : "not met");
}
inline std::string factor_verdict(const result& r) {
  if (r.goal == 0) return "";
  return text("%.1f: ", r.goal) + (r.found.of_mark >= r.goal ? "met" : "not met");
}

inline std::string why_not(const result& r) {
  return r.failed.empty() ? "not supported here: " + r.unsupported : "failed: " + r.failed;
}

// Those that are measured against that.
inline std::string kernels(const std::vector<result>& all, const std::string& mark) {
  std::string rows;
  for (const result& r : all) {
    if (r.operations != 0 || r.mark_name != mark) continue;
    rows += "| `" + r.name + "` | " + r.shape + " | ";
    rows += r.measured()
                ? text("%.3f | %.0f | %.1f %% | ", r.found.ms, r.bytes / r.found.ms / 1e6, 100 * r.found.of_mark) +
                      verdict(r) + " |\n"
                : "| | | " + why_not(r) + " |\n";
  }
  if (rows.empty()) return "";
  return "| kernel | elements | ms | GB/s | of " + mark + " | goal |\n|---|--:|--:|--:|--:|---|\n" + rows + "\n";
}

inline std::string products(const std::vector<result>& all) {
  std::string rows;
  for (const result& r : all) {
    if (r.operations == 0) continue;
    rows += "| `" + r.name + "` | ";
    rows += r.measured() ? text("%.4f | %.4f | %.0f | %.0f | %.2f | ", r.found.mark_ms, r.found.ms,
                                r.operations / r.found.ms / 1e9, r.bytes / r.found.ms / 1e6, r.found.of_mark) +
                               factor_verdict(r) + " |\n"
                         : "| | | | | " + why_not(r) + " |\n";
  }
  if (rows.empty()) return "";
  return "| product | bfloat16, ms | FP8, ms | TFLOP/s | GB/s | times bfloat16's speed | goal "
         "|\n|---|--:|--:|--:|--:|--:|---|\n" +
         rows + "\n";
}

inline std::string emulated_rows(const std::vector<result>& all) {
  std::string rows;
  for (const result& r : all)
    rows += "| `" + r.name + "` | " + r.shape + " | " + (r.measured() ? "ran" : why_not(r)) + " |\n";
  return "| emulated, not timed | elements | |\n|---|--:|---|\n" + rows;
}

inline std::string caption(const session& s) {
  const card& c = s.device;
  if (!s.timed)
    return "Run at tiny sizes on the device \"" + c.name +
           "\": that every row runs, not how fast; no number here is a "
           "time. Toolkit " +
           c.toolkit + "; " + c.date + ".\n";
  return c.name + ", driver " + c.driver + ", CUDA runtime " + c.runtime + ", nvcc " + c.toolkit + "; " +
         (c.clocks.empty() ? "clocks unknown (no nvidia-smi)" : c.clocks) +
         text("; %zu MiB read and written a turn; medians of %d rounds; ", s.moved >> 20, s.length.rounds) + c.date +
         ".\n";
}

}  // namespace detail

inline std::string markdown(const session& s, const std::vector<result>& all) {
  const std::string tables =
      s.timed ? detail::kernels(all, "the copy") + detail::kernels(all, "reading") + detail::products(all)
              : detail::emulated_rows(all);
  std::string page = detail::caption(s) + "\n" + tables;
  return page.substr(0, page.find_last_not_of('\n') + 1) + "\n";
}

inline std::string json(const session& s, const std::vector<result>& all) {
  using detail::quoted, lab::text;
  const card& c = s.device;
  std::string out = "{\n \"context\": {\"card\": " + quoted(c.name) + ", \"driver\": " + quoted(c.driver) +
                    ", \"runtime\": " + quoted(c.runtime) + ", \"toolkit\": " + quoted(c.toolkit) +
                    ", \"clocks\": " + quoted(c.clocks) + ", \"date\": " + quoted(c.date) +
                    text(", \"bytes_a_turn\": %zu, \"rounds\": %d, \"timed\": %s},\n \"results\": [", s.moved,
                         s.length.rounds, s.timed ? "true" : "false");
  const char* separator = "\n";
  for (const result& r : all) {
    out += separator + ("  {\"name\": " + quoted(r.name)) + ", \"shape\": " + quoted(r.shape);
    if (r.measured()) out += ", \"mark\": " + quoted(r.mark_name);
    if (!r.failed.empty())
      out += ", \"failed\": " + quoted(r.failed);
    else if (!r.unsupported.empty())
      out += ", \"unsupported\": " + quoted(r.unsupported);
    else if (s.timed)
      out += text(", \"ms\": %.6g, \"mark_ms\": %.6g, \"of_mark\": %.4f, \"goal\": %.2f, \"bytes\": %.0f", r.found.ms,
                  r.found.mark_ms, r.found.of_mark, r.goal, r.bytes) +
             text(", \"bytes_per_second\": %.6g", 1e3 * r.bytes / r.found.ms) +
             (r.operations == 0 ? "" : text(", \"operations_per_second\": %.6g", 1e3 * r.operations / r.found.ms));
    out += "}";
    separator = ",\n";
  }
  return out + "\n ]\n}\n";
}

}  // namespace cuda_bench
