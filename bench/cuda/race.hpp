// The clock of a GPU: work and mark in turn in one stream, timed by events; medians, and ratios of neighbours.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/median.hpp"
#include "row.hpp"

namespace cuda_bench {

// How long a race is. most_runs: of one work in a row, between two events.
struct race_length {
  int warm, rounds, most_runs;
};

struct outcome {
  double ms = 0, mark_ms = 0;
  double of_mark = 0;  // the mark's time over the work's
};

class event {
  cudaEvent_t event_ = nullptr;

 public:
  event() { require(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~event() { cudaEventDestroy(event_); }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  void record(cudaStream_t stream) const { require(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  double ms_since(const event& earlier) const {
    float ms = 0;
    require(cudaEventElapsedTime(&ms, earlier.event_, event_), "cudaEventElapsedTime");
    return ms;
  }
};

namespace detail {

inline void repeat(const launch& body, int times, std::size_t& turn, cudaStream_t stream) {
  for (int i = 0; i < times; ++i) require(body(turn++, stream), "the launch");
}

// Warms up and finds how many runs fill a batch that is long beside a launch and the clock's ticks.
inline int runs_a_batch(const launch& body, const race_length& length, std::size_t& turn, cudaStream_t stream) {
  constexpr double batch_ms = 1;
  const event begin, end;
  repeat(body, length.warm, turn, stream);
  begin.record(stream);
  repeat(body, 2, turn, stream);
  end.record(stream);
  require(cudaStreamSynchronize(stream), "the warm-up");
  const double ms = end.ms_since(begin) / 2;
  return static_cast<int>(std::clamp(std::ceil(batch_ms / std::max(ms, 1e-6)), 1.0, 1.0 * length.most_runs));
}

}  // namespace detail

inline outcome race(const contest& c, const race_length& length, cudaStream_t stream) {
  std::size_t turn = 0, mark_turn = 0;
  const int runs = detail::runs_a_batch(c.work, length, turn, stream);
  const int mark_runs = detail::runs_a_batch(c.mark, length, mark_turn, stream);
  // The first round fills the queue and is thrown away: from then on the device never waits for the host.
  struct round {
    event begin, between, end;
  };
  std::vector<round> rounds(static_cast<std::size_t>(length.rounds) + 1);
  for (const round& r : rounds) {
    r.begin.record(stream);
    detail::repeat(c.work, runs, turn, stream);
    r.between.record(stream);
    detail::repeat(c.mark, mark_runs, mark_turn, stream);
    r.end.record(stream);
  }
  require(cudaStreamSynchronize(stream), "the run");
  std::vector<double> ms, mark_ms, of_mark;
  for (auto r = rounds.begin() + 1; r != rounds.end(); ++r) {
    ms.push_back(r->between.ms_since(r->begin) / runs);
    mark_ms.push_back(r->end.ms_since(r->between) / mark_runs);
    of_mark.push_back(mark_ms.back() / ms.back());
  }
  return {harness::median(ms), harness::median(mark_ms), harness::median(of_mark)};
}

}  // namespace cuda_bench
