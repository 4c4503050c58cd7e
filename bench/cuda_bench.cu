// Measures the kernels on a GPU against a copy or reading of the same bytes, and FP8 products against those in bfloat16.
// SPDX-License-Identifier: MIT
//
// Not a Google Benchmark program: the time is the device's, between events, and a kernel and its mark take turns in one
// stream; that library would add its own loop on the host's clock, and GPU machines often come without it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>

#include "cuda/report.hpp"
#include "lab/failure.hpp"
#include "lab/text.hpp"
#include "lab/whole_file.hpp"

namespace {

using namespace cuda_bench;

constexpr const char* help =
    R"(Measures Octet's kernels on a GPU against a device-to-device copy of the same bytes, decode attention against reading
its cache, and FP8 products of cuBLASLt against those in bfloat16. Prints Markdown tables.

cuda_bench [OPTIONS]
  --filter REGEX   the rows whose names match
  --list           their names, nothing else
  --quick          few rounds: for a look, not for the record
  --mib N          the size of the two buffers of the copy, in MiB (2048); kernels read and write as much together
  --markdown FILE  also writes the tables there
  --json FILE      also writes the results there
  --emulate        tiny sizes, each row once, no times: that everything runs. Also taken where an emulator says it is one
  --help           this text

Exit code: 0 all rows ran (whether or not they met their goals), 1 a row failed, 2 usage, 77 no CUDA device.
)";

struct options {
  std::string filter = ".", markdown_file, json_file;
  std::size_t mib = 2048;
  bool list = false, quick = false, emulate = false, help = false;
};

options parse(int argc, char** argv) {
  options found;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      if (++i == argc) throw lab::usage_error(word + ": needs a value");
      return std::string(argv[i]);
    };
    if (word == "--filter") {
      found.filter = value();
    } else if (word == "--markdown") {
      found.markdown_file = value();
    } else if (word == "--json") {
      found.json_file = value();
    } else if (word == "--mib") {
      const std::string number = value();
      char* end = nullptr;
      const long mib = std::strtol(number.c_str(), &end, 10);
      if (number.empty() || *end != '\0' || mib < 1 || mib > 65536)
        throw lab::usage_error("--mib " + number + ": is no number from 1 to 65536");
      found.mib = static_cast<std::size_t>(mib);
    } else if (word == "--list") {
      found.list = true;
    } else if (word == "--quick") {
      found.quick = true;
    } else if (word == "--emulate") {
      found.emulate = true;
    } else if (word == "--help" || word == "-h") {
      found.help = true;
    } else {
      throw lab::usage_error("there is no option " + word);
    }
  }
  return found;
}

std::vector<row> rows_like(const std::string& filter) {
  std::vector<row> all, matching;
  add_conversions(all);
  add_quantizers(all);
  add_layouts(all);
  add_attention(all);
  add_products(all);
  try {
    const std::regex pattern(filter, std::regex::extended);
    std::copy_if(all.begin(), all.end(), std::back_inserter(matching),
                 [&](const row& r) { return std::regex_search(r.name, pattern); });
  } catch (const std::regex_error&) {
    throw lab::usage_error("--filter " + filter + ": is no regular expression");
  }
  if (matching.empty()) throw lab::usage_error("no row matches '" + filter + "'; --list names them");
  return matching;
}

result measure(const row& r, arena& memory, const race_length& length, cudaStream_t stream) {
  result found{r.name, "", "the copy", r.goal, 0, 0, {}, "", ""};
  try {
    const contest c = r.prepare(memory);
    found.shape = c.shape;
    found.mark_name = c.mark_name;
    found.bytes = c.bytes;
    found.operations = c.operations;
    found.found = race(c, length, stream);
  } catch (const unsupported& error) {
    found.unsupported = error.what();
  } catch (const std::runtime_error& error) {
    found.failed = error.what();
  }
  return found;
}

std::string progress(const result& r, bool timed) {
  if (!r.measured()) return detail::why_not(r);
  if (!timed) return "ran";
  return r.operations == 0
             ? lab::text("%8.0f GB/s %6.1f %% of %s", r.bytes / r.found.ms / 1e6, 100 * r.found.of_mark,
                         r.mark_name.c_str())
             : lab::text("%8.0f TFLOP/s, %.2f times bfloat16's", r.operations / r.found.ms / 1e9, r.found.of_mark);
}

// Wakes the clocks and reads them while copies run; from here on the device has not been idle.
void wake(card& device, arena& memory, cudaStream_t stream) {
  constexpr int copies = 500;
  memory.begin(memory.moved());
  const auto copy = memory.copy_of(static_cast<double>(memory.moved()));
  for (std::size_t i = 0; i < copies; ++i) require(copy(i, stream), "a copy");
  ask_for_clocks(device);
  require(cudaStreamSynchronize(stream), "the copies");
}

int run(const options& o) {
  const std::vector<row> rows = rows_like(o.filter);
  if (o.list) {
    for (const row& r : rows) std::puts(r.name.c_str());
    return 0;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "cuda_bench: no CUDA device: %zu rows built, 0 run\n", rows.size());
    return 77;
  }
  session now{describe_card(), 2 * o.mib << 20, {5, o.quick ? 7 : 25, 200}, true};
  if (o.emulate || now.device.emulated) {
    now.moved = std::size_t{96} << 10;
    now.length = {1, 1, 2};
    now.timed = false;
  }
  cudaStream_t stream = nullptr;
  require(cudaStreamCreate(&stream), "a stream");
  // Two turns of arrays, two of the copy's, and what descales and whole rows add; where sizes are real, large products.
  constexpr std::size_t beside = std::size_t{64} << 20, products = std::size_t{2} << 30;
  const std::size_t cache = now.timed ? now.device.cache_bytes : 0;
  const auto needed = [&] { return std::max(4 * now.moved + 6 * cache + beside, now.timed ? products : 0); };
  if (now.timed) {
    const std::size_t wanted = now.moved, there = now.device.free_bytes / 10 * 9;
    while (needed() > there && now.moved > std::size_t{1} << 20) now.moved /= 2;
    if (now.moved < wanted)
      std::fprintf(stderr, "cuda_bench: there is not so much memory: %zu MiB a buffer\n", now.moved >> 21);
  }
  std::vector<result> all;
  {
    arena memory(needed(), now.moved, cache, stream);
    if (now.timed) wake(now.device, memory, stream);
    for (const row& r : rows) {
      all.push_back(measure(r, memory, now.length, stream));
      std::fprintf(stderr, "  %-48s %s\n", r.name.c_str(), progress(all.back(), now.timed).c_str());
      // After a fault of a kernel nothing more runs on this device.
      if (cudaStreamSynchronize(stream) != cudaSuccess) break;
    }
  }
  cudaStreamDestroy(stream);
  std::fputs(markdown(now, all).c_str(), stdout);
  if (!o.markdown_file.empty()) lab::write_whole(o.markdown_file, markdown(now, all));
  if (!o.json_file.empty()) lab::write_whole(o.json_file, json(now, all));
  const auto failed = std::count_if(all.begin(), all.end(), [](const result& r) { return !r.failed.empty(); });
  const auto with_goal =
      std::count_if(all.begin(), all.end(), [](const result& r) { return r.measured() && r.goal > 0; });
  const auto met = std::count_if(
      all.begin(), all.end(), [](const result& r) { return r.measured() && r.goal > 0 && r.found.of_mark >= r.goal; });
  std::fflush(stdout);
  std::fprintf(stderr, "cuda_bench: %zu of %zu rows ran, %td failed; ", all.size(), rows.size(), failed);
  if (now.timed)
    std::fprintf(stderr, "%td of %td goals met\n", met, with_goal);
  else
    std::fputs("not timed\n", stderr);
  return failed == 0 && all.size() == rows.size() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const options o = parse(argc, argv);
    if (o.help) {
      std::fputs(help, stdout);
      return 0;
    }
    return run(o);
  } catch (const lab::usage_error& error) {
    std::fprintf(stderr, "cuda_bench: %s (see --help)\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_bench: %s\n", error.what());
    return 1;
  }
}
