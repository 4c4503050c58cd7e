// Results of the benchmark programs, as Google Benchmark writes them (JSON), to Markdown tables and a picture.
// SPDX-License-Identifier: MIT
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/median.hpp"
#include "harness/names.hpp"
#include "lab/pictures/plot.hpp"
#include "lab/program.hpp"
#include "lab/text.hpp"
#include "lab/whole_file.hpp"

namespace {

using lab::failure;
using lab::text;

// -- What was measured ------------------------------------------------------------------------------------------------

struct result {
  double ns, of_limit, bytes, bytes_per_second;
  double ms = 0, times_bfloat16 = 0, times_float = 0;  // of products; 0: not reported
};

// A benchmark at the three levels; those where it was not run are missing.
using by_level = std::map<std::string, result>;

struct results {
  nlohmann::json context;
  std::vector<std::string> order;              // of the names, as measured
  std::map<std::string, by_level> benchmarks;  // by name without the level

  const result* at(const std::string& name, const std::string& level) const {
    const auto found = benchmarks.find(name);
    if (found == benchmarks.end() || found->second.count(level) == 0) return nullptr;
    return &found->second.at(level);
  }
};

// Takes the level out of a name: "encode/float/e4m3/L1" is "encode/float/e4m3" in L1.
std::pair<std::string, std::string> split(const std::string& name) {
  for (const char* level : {"/L1", "/L2", "/MEM"}) {
    const std::string part = level;
    const std::size_t at = name.find(part);
    if (at == std::string::npos) continue;
    const std::size_t behind = at + part.size();
    if (behind == name.size() || name[behind] == '/') return {name.substr(0, at) + name.substr(behind), part.substr(1)};
  }
  throw failure(name + ": names no level");
}

// Adds a file's benchmarks, each by the medians over its repetitions.
void read(const std::string& file, results& all) {
  std::ifstream stream(file);
  if (!stream) throw failure(file + ": could not be opened");
  const nlohmann::json json = nlohmann::json::parse(stream, nullptr, false);
  if (!json.is_object() || !json.contains("benchmarks")) throw failure(file + ": holds no results of Google Benchmark");
  all.context = json.at("context");

  std::vector<std::string> names;
  std::map<std::string, std::map<std::string, std::vector<double>>> counters;
  for (const nlohmann::json& run : json.at("benchmarks")) {
    if (run.value("run_type", "") != "iteration" || !run.contains("of_limit")) continue;
    const std::string name = harness::short_name(run.at("name"));
    if (counters.count(name) == 0) names.push_back(name);
    for (const char* counter : {"ns", "of_limit", "bytes", "bytes_per_second"})
      counters[name][counter].push_back(run.at(counter));
    for (const char* counter : {"ms", "times_bfloat16", "times_float"})
      counters[name][counter].push_back(run.value(counter, 0.0));
  }
  for (const std::string& full : names) {
    const auto [name, level] = split(full);
    if (all.benchmarks.count(name) == 0) all.order.push_back(name);
    auto& c = counters[full];
    all.benchmarks[name][level] = {harness::median(c["ns"]),         harness::median(c["of_limit"]),
                                   harness::median(c["bytes"]),      harness::median(c["bytes_per_second"]),
                                   harness::median(c["ms"]),         harness::median(c["times_bfloat16"]),
                                   harness::median(c["times_float"])};
  }
}

// -- Markdown ---------------------------------------------------------------------------------------------------------

std::string share(double of_limit) { return text(of_limit < 0.1 ? "%.1f %%" : "%.0f %%", 100 * of_limit); }
std::string nanoseconds(double ns) { return text(ns < 0.1 ? "%.4f" : ns < 10 ? "%.3f" : "%.1f", ns); }

std::string caption(const nlohmann::json& context) {
  const auto word = [&](const char* key) {
    const nlohmann::json value = context.value(key, nlohmann::json("?"));
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  std::string s = word("machine") + ", " + word("num_cpus") + " processors, kernels of the row " + word("row") + "; " +
                  word("compiler") + " " + word("flags") + "; MEM is " + word("mem_mib") + " MiB; nice " +
                  word("nice") + "; " + word("date").substr(0, 10);
  if (context.contains("load_avg") && !context["load_avg"].empty())
    s += text("; load average %.1f", context["load_avg"][0].get<double>());
  return s + ".\n";
}

// Benchmarks that were run at several levels: nanoseconds an element and the share of the limit at each.
std::string table_of_levels(const results& all, const std::string& verb) {
  std::string rows;
  for (const std::string& name : all.order) {
    const by_level& levels = all.benchmarks.at(name);
    if (name.compare(0, verb.size() + 1, verb + "/") != 0 || (levels.size() == 1 && levels.count("L2") != 0)) continue;
    rows += "| `" + name + "` |";
    for (const char* level : {"L1", "L2", "MEM"}) {
      const result* r = all.at(name, level);
      rows += r == nullptr ? " | |" : " " + nanoseconds(r->ns) + " | " + share(r->of_limit) + " |";
    }
    const result* mem = all.at(name, "MEM");
    rows += mem == nullptr ? " |\n" : text(" %.1f |\n", mem->bytes_per_second / 1e9);
  }
  if (rows.empty()) return "";
  return "| ns an element | L1 | of limit | L2 | of limit | MEM | of limit | GB/s in MEM "
         "|\n|---|--:|--:|--:|--:|--:|--:|--:|\n" +
         rows + "\n";
}

// Benchmarks that were run in L2 only, against the plain one of the same verb: other formats, other data.
std::string table_of_siblings(const results& all, const std::string& verb) {
  const std::map<std::string, std::string> plain_ones = {
      {"encode", "encode/float/e4m3"}, {"decode", "decode/e4m3/float"}, {"quantize", "quantize/float/per_token"}};
  const auto known = plain_ones.find(verb);
  const result* plain = known == plain_ones.end() ? nullptr : all.at(known->second, "L2");
  std::string rows;
  for (const std::string& name : all.order) {
    const by_level& levels = all.benchmarks.at(name);
    if (name.compare(0, verb.size() + 1, verb + "/") != 0 || levels.size() != 1 || levels.count("L2") == 0) continue;
    const result& r = levels.at("L2");
    rows += "| `" + name + "` | " + nanoseconds(r.ns) + " | " + share(r.of_limit) + " | " +
            (plain == nullptr ? "" : text("%.2f", r.ns / plain->ns)) + " |\n";
  }
  if (rows.empty()) return "";
  return "| ns an element, in L2 | L2 | of limit | times the plain one's |\n|---|--:|--:|--:|\n" + rows + "\n";
}

// Products by so many threads, against those with bfloat16 and float weights.
std::string table_of_products(const results& all, int threads) {
  const std::string part = text("/threads:%d", threads);
  const auto times = [](double ratio) { return ratio == 0 ? std::string(" |") : text(" %.2f |", ratio); };
  std::string rows;
  for (const std::string& name : all.order) {
    const std::size_t at = name.find(part);
    const result* r = all.at(name, "MEM");
    if (at == std::string::npos || r == nullptr) continue;
    rows += "| `" + name.substr(0, at) + name.substr(at + part.size()) + "` |" + text(" %.2f |", r->ms) +
            text(" %.1f | ", r->bytes_per_second / 1e9) + share(r->of_limit) + " |" + times(r->times_bfloat16) +
            times(r->times_float) + "\n";
  }
  if (rows.empty()) return "";
  return text("| ms a matrix, %d thread%s", threads, threads == 1 ? "" : "s") +
         " | ms | GB/s | of limit | times bfloat16's speed | times float's speed |\n|---|--:|--:|--:|--:|--:|\n" +
         rows + "\n";
}

std::string markdown(const results& all) {
  std::string s = caption(all.context) + "\n";
  std::vector<std::string> verbs;
  for (const std::string& name : all.order) {
    const std::string verb = name.substr(0, name.find('/'));
    if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end()) verbs.push_back(verb);
  }
  for (const std::string& verb : verbs)
    if (verb == "gemv")
      s += table_of_products(all, 1) + table_of_products(all, 2);
    else
      s += table_of_levels(all, verb) + table_of_siblings(all, verb);
  s.erase(s.find_last_not_of('\n') + 1);
  return s + "\n";
}

// -- The picture ------------------------------------------------------------------------------------------------------

// The share of the limit over the bytes moved: a panel for each verb, a curve for each type.
std::string svg(const results& all) {
  struct kind {
    const char *name, *colour;
  };
  const kind types[] = {{"float", "#1b6ca8"}, {"float16", "#c2571a"}, {"bfloat16", "#2e8540"}};
  const auto curve = [&](const std::string& label, const kind& type, bool dashed, const std::string& name) {
    lab::curve c{label, type.colour, dashed, {}};
    for (const char* level : {"L1", "L2", "MEM"})
      if (const result* r = all.at(name, level)) c.points.emplace_back(r->bytes, r->of_limit);
    return c;
  };

  lab::panel encode, decode, amax, quantize;
  encode.title = "encode to e4m3 (dashed: e5m2)";
  decode.title = "decode from e4m3 (dashed: e5m2)";
  amax.title = "amax";
  quantize.title = "quantize to e4m3, per token (dashed: per tensor)";
  for (const kind& type : types) {
    const std::string name = type.name;
    for (const std::string format : {"e4m3", "e5m2"}) {
      const bool dashed = format == "e5m2";
      encode.curves.push_back(curve(dashed ? format : name, type, dashed, "encode/" + name + "/" + format));
      decode.curves.push_back(curve("", type, dashed, "decode/" + format + "/" + name));
    }
    amax.curves.push_back(curve("", type, false, "amax/" + name));
    quantize.curves.push_back(curve("", type, false, "quantize/" + name + "/per_token"));
    quantize.curves.push_back(curve("", type, true, "quantize/" + name + "/per_tensor"));
  }

  lab::picture p;
  p.title = "How near the kernels come to the machine's own speed";
  p.subtitle = "time of a loop that moves the same bytes and computes nothing, over the time of the kernel";
  p.x_title = "bytes read and written";
  p.least = 1e4;
  p.most = 1e10;
  for (const auto& [level, name] : {std::pair("L1", "L1"), std::pair("L2", "L2"), std::pair("MEM", "memory")})
    for (const auto& [key, levels] : all.benchmarks)
      if (key.compare(0, 7, "encode/") == 0 && levels.count(level) != 0) {
        p.marks.emplace_back(levels.at(level).bytes, name);
        break;
      }
  for (lab::panel* panel : {&encode, &decode, &amax, &quantize}) {
    for (int i = 0; i <= 4; ++i) panel->ticks.emplace_back(0.25 * i, text("%d %%", 25 * i));
    p.panels.push_back(*panel);
  }
  return lab::to_svg(p);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Turns results of the benchmark programs into Markdown tables and a picture.", "report");
  std::vector<std::string> files;
  std::string markdown_file, svg_file;
  app.add_option("FILE", files, "results, as --benchmark_out writes them")->required();
  app.add_option("--markdown", markdown_file, "where the tables go; without it, to standard output");
  app.add_option("--svg", svg_file, "where the picture goes");
  return lab::run(app, argc, argv, [&] {
    results all;
    for (const std::string& file : files) read(file, all);
    if (all.order.empty()) throw failure("there are no results");
    if (markdown_file.empty())
      std::fputs(markdown(all).c_str(), stdout);
    else
      lab::write_whole(markdown_file, markdown(all));
    if (!svg_file.empty()) lab::write_whole(svg_file, svg(all));
  });
}
