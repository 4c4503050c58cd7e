// Times a benchmark and the machine's limit in turn, and reports nanoseconds an element and the share of the limit.
// SPDX-License-Identifier: MIT
#pragma once

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "limits.hpp"
#include "median.hpp"

namespace harness {

// What the limit of a benchmark moves: so many bytes are read, and written.
struct traffic {
  const void* in;
  void* out;
  std::size_t read, written;
};

inline limit_loops loops_here(mix m) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512_loops(m);
  if (__builtin_cpu_supports("avx2")) return avx2_loops(m);
#endif
  return plain_loops(m);
}

inline mix mix_of(const traffic& t) {
  if (t.written == 0) return {2, 0};
  if (t.read >= t.written) return {static_cast<int>(t.read / t.written), 1};
  return {1, static_cast<int>(t.written / t.read)};
}

// One of the loops, on the arrays of a benchmark.
class limit {
  const limit_loop* loop_;
  const unsigned char* in_;
  unsigned char* out_;
  std::size_t steps_;

 public:
  limit(const limit_loop& loop, const traffic& t)
      : loop_(&loop),
        in_(static_cast<const unsigned char*>(t.in)),
        out_(static_cast<unsigned char*>(t.out)),
        steps_(t.read / 64 / static_cast<std::size_t>(mix_of(t).read)) {}
  bool fits() const { return steps_ >= loop_->least_steps; }
  void operator()() const { loop_->run(in_, out_, steps_); }
  const char* name() const { return loop_->name; }
};

// Seconds of this thread on its processor: while other programs have it, this clock stands still.
inline double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The seconds of so many calls.
template <class Work>
double seconds_of(std::int64_t calls, const Work& work) {
  const double begin = now();
  for (std::int64_t i = 0; i < calls; ++i) {
    work();
    benchmark::ClobberMemory();
  }
  return now() - begin;
}

// Calls that take about 200 microseconds: long against the clock's own time, short against changes of the machine.
template <class Work>
std::int64_t calls_a_batch(const Work& work) {
  constexpr double batch = 2e-4;
  double one = seconds_of(1, work);  // cold
  if (one < batch) one = seconds_of(1, work);
  if (one < batch / 10) one = seconds_of(10, work) / 10;
  return one >= batch ? 1 : std::min(std::int64_t{1} << 20, static_cast<std::int64_t>(batch / std::max(one, 1e-10)));
}

// The fastest of the loops that move such bytes: tried once a size on the very arrays, in turn, by their best times.
inline limit strongest(const traffic& t) {
  static std::map<std::tuple<std::size_t, std::size_t>, const limit_loop*> known;
  const limit_loop*& best = known[{t.read, t.written}];
  if (best == nullptr) {
    const limit_loops all = loops_here(mix_of(t));
    std::vector<double> least(all.count, 1e9);
    for (int round = 0; round < 5; ++round)
      for (std::size_t i = 0; i < all.count; ++i) {
        const limit candidate(all.loops[i], t);
        if (!candidate.fits()) continue;
        const std::int64_t calls = calls_a_batch(candidate);
        least[i] = std::min(least[i], seconds_of(calls, candidate) / static_cast<double>(calls));
      }
    best = all.loops + (std::min_element(least.begin(), least.end()) - least.begin());
  }
  return limit(*best, t);
}

// How many calls make a batch. Found when a benchmark runs first and kept, since Google Benchmark wants every
// repetition to count the same iterations.
struct batch_sizes {
  std::int64_t work = 0, limit = 0;
};

// One benchmark at work.
struct run {
  benchmark::State& state;
  batch_sizes& batch;
};

// Runs `work`, which handles so many elements a call, and its limit (one loop, or several one after the other, the last
// of which moves every array) in turn, in batches. Google Benchmark is told the time of the work alone, of which it
// takes the mean; the counters are medians over the batches:
//   ns                 nanoseconds an element
//   limit_ns           the same of the limit
//   of_limit           limit_ns / ns, of neighbours: 1 is as fast as the machine moves the bytes
//   bytes              of the arrays, each once
//   bytes_per_second   by `ns`
template <class Work>
void against_limit(const run& r, std::size_t elements, const std::vector<traffic>& moved, const Work& work) {
  std::vector<limit> loops;
  std::string names;
  for (const traffic& t : moved) {
    loops.push_back(strongest(t));
    names += (names.empty() ? "limit: " : " + ") + std::string(loops.back().name());
  }
  const auto reach_limit = [&loops] {
    for (const limit& loop : loops) loop();
  };

  benchmark::State& state = r.state;
  if (r.batch.work == 0) r.batch = {calls_a_batch(work), calls_a_batch(reach_limit)};
  const auto [calls, limit_calls] = r.batch;
  work();  // warm
  std::vector<double> ns, limit_ns, of_limit;
  while (state.KeepRunningBatch(calls)) {
    const double seconds = seconds_of(calls, work);
    const double limit_seconds = seconds_of(limit_calls, reach_limit);
    state.SetIterationTime(seconds);
    ns.push_back(1e9 * seconds / static_cast<double>(calls) / static_cast<double>(elements));
    limit_ns.push_back(1e9 * limit_seconds / static_cast<double>(limit_calls) / static_cast<double>(elements));
    of_limit.push_back(limit_ns.back() / ns.back());
  }
  const double bytes = static_cast<double>(moved.back().read + moved.back().written);
  state.counters["ns"] = median(ns);
  state.counters["limit_ns"] = median(limit_ns);
  state.counters["of_limit"] = median(of_limit);
  state.counters["bytes"] = bytes;
  state.counters["bytes_per_second"] = 1e9 * bytes / static_cast<double>(elements) / median(ns);
  state.SetLabel(names);
}

}  // namespace harness
