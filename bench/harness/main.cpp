// The main of every benchmark program: Google Benchmark's options and two more, and what the machine and the build are.
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "memory.hpp"
#include "names.hpp"
#include "program.hpp"

namespace {

// The value behind "key : " in a file of such lines; empty where there is none.
std::string value_in(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.compare(0, key.size(), key) == 0) {
      const std::size_t colon = line.find(": ");
      return colon == std::string::npos ? "" : line.substr(colon + 2);
    }
  return "";
}

std::string first_line(const char* file) {
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  return line;
}

void describe() {
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "g++ " __VERSION__;
#endif
  benchmark::AddCustomContext("machine", value_in("/proc/cpuinfo", "model name"));
  benchmark::AddCustomContext("compiler", compiler);
  benchmark::AddCustomContext("flags", BENCH_FLAGS);
  benchmark::AddCustomContext("row", octet::simd::row_name(octet::simd::row_in_use()));
  benchmark::AddCustomContext("huge_pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  benchmark::AddCustomContext("mem_mib", std::to_string(harness::mem_bytes() >> 20));
  benchmark::AddCustomContext("nice", std::to_string(getpriority(PRIO_PROCESS, 0)));
}

// One line a benchmark: the medians over its repetitions.
class brief : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<double> ns, of_limit;
    for (const Run& r : runs)
      if (r.run_type == Run::RT_Iteration && r.counters.count("ns") != 0) {
        ns.push_back(r.counters.at("ns"));
        of_limit.push_back(r.counters.at("of_limit"));
      }
    if (ns.empty()) return;
    std::printf("  %-48s %9.4f ns %6.1f %% of the limit\n", harness::short_name(runs[0].benchmark_name()).c_str(),
                harness::median(ns), 100 * harness::median(of_limit));
    std::fflush(stdout);
  }
};

struct options {
  bool brief = false;
};

// Takes this program's own options out of the arguments: --brief and --mem_mib=N.
bool take_options(int& argc, char** argv, options& found) {
  constexpr const char* mem = "--mem_mib=";
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--brief") == 0) {
      found.brief = true;
    } else if (std::strncmp(argv[i], mem, std::strlen(mem)) == 0) {
      char* end = nullptr;
      const long mib = std::strtol(argv[i] + std::strlen(mem), &end, 10);
      if (*end != '\0' || mib < 4 || mib > 4096) {
        std::fprintf(stderr, "%s: is no number of MiB from 4 to 4096\n", argv[i]);
        return false;
      }
      harness::mem_bytes() = static_cast<std::size_t>(mib) << 20;
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  options found;
  if (!take_options(argc, argv, found) || benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  describe();
  harness::register_benchmarks();
  brief lines;
  benchmark::RunSpecifiedBenchmarks(found.brief ? &lines : nullptr);
  benchmark::Shutdown();
}
