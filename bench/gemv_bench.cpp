// Products with FP8 weights: gemv from memory against bfloat16, float and reading alone; dot and axpy in L1.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "harness/arrays.hpp"
#include "harness/products.hpp"
#include "harness/program.hpp"

namespace {

using octet::bfloat16;
using octet::e4m3;
using octet::e5m2;
using octet::per_tensor;
using blocks = octet::per_block<128, 128>;

constexpr std::size_t cols = harness::product_cols, most_columns = 8;

// -- The weights ------------------------------------------------------------------------------------------------------

// 16384 rows, so that a matrix of codes has 64 MiB and one of floats 256 MiB; fewer where MEM is below 1 GiB.
std::size_t rows() {
  const std::size_t fitting = harness::mem_bytes() / (16 * cols);
  return fitting < 16384 ? fitting / 8 * 8 : 16384;
}

// MEM, or five matrices of floats if that is more. Every matrix, of whatever type, lies in the same bytes: 30 to 3F and
// B0 to BF, which make no subnormal, infinity or NaN of any type. Each call of next() gives those read longest ago.
class weights {
  harness::region memory_;
  const std::size_t bytes_ = std::max(harness::mem_bytes(), 20 * rows() * cols);
  unsigned char* const begin_ = memory_.at_least(bytes_);
  std::size_t next_ = 0;

 public:
  weights() {
    for (std::size_t i = 0; i + 8 <= bytes_; i += 8) {
      std::uint64_t word = (i + 1) * 0x9E3779B97F4A7C15u;
      word = (word ^ word >> 29) * 0xBF58476D1CE4E5B9u;
      word = ((word ^ word >> 32) & 0x8F8F8F8F8F8F8F8Fu) | 0x3030303030303030u;
      std::memcpy(begin_ + i, &word, 8);
    }
  }
  const unsigned char* next(std::size_t matrix) {
    if (next_ + matrix > bytes_) next_ = 0;
    next_ += matrix;
    return begin_ + next_ - matrix;
  }
};

// What all products work on.
struct everything {
  weights w;
  std::vector<float> x = std::vector<float>(most_columns * cols), y = std::vector<float>(most_columns * rows());
  std::vector<bfloat16> x_bfloat16;
  std::vector<octet::descale> descales =
      std::vector<octet::descale>(octet::descale_count(blocks{}, rows(), cols), octet::descale(0.25f));

  everything() {
    harness::fill(x.data(), x.size(), harness::normal);
    for (const float value : x) x_bfloat16.push_back(bfloat16(value));
  }
};

everything& all() {
  static everything made;
  return made;
}

// -- The kernels ------------------------------------------------------------------------------------------------------

// Work on the rows from `first` on of a matrix that begins at w.
struct part {
  const unsigned char* w;
  std::size_t first, count;
};

template <class F, class T, class Granularity>
void fp8(const part& p, std::size_t columns) {
  everything& a = all();
  const octet::quantized_view<F, Granularity> w{
      {octet::as_codes<F>(static_cast<const void*>(p.w)), rows(), cols}, a.descales.data(), Granularity{}};
  const T* x = nullptr;
  if constexpr (std::is_same_v<T, float>)
    x = a.x.data();
  else
    x = a.x_bfloat16.data();
  octet::gemv(w.row_range(p.first, p.count), octet::matrix_view<const T>(x, columns, cols),
              octet::matrix_view<float>(a.y.data() + p.first, columns, p.count, rows()));
}

void other(const harness::product_loop& loop, const part& p, std::size_t element) {
  everything& a = all();
  loop.run(p.w + p.first * cols * element, p.count, {a.x.data(), a.x_bfloat16.data()}, a.y.data() + p.first);
}

harness::limit reading(const harness::limit_loop& loop, const part& p, std::size_t element) {
  return {loop, {p.w + p.first * cols * element, nullptr, p.count * cols * element, 0}};
}

// -- The clock --------------------------------------------------------------------------------------------------------

// The processor time that the slowest of the threads takes for its share of the rows, all of which begin at once.
template <class Work>
double seconds_of(std::size_t element, std::size_t threads, const Work& work) {
  const unsigned char* const w = all().w.next(rows() * cols * element);
  const std::size_t share = rows() / threads;
  std::atomic<std::size_t> ready{0};
  std::vector<double> seconds(threads);
  const auto run = [&](std::size_t thread) {
    ++ready;
    while (ready < threads) {
    }
    const double begin = harness::now();
    work(part{w, share * thread, share});
    seconds[thread] = harness::now() - begin;
  };
  std::vector<std::thread> others;
  for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& thread : others) thread.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

// The loops that were the fastest, for so many threads.
struct strongest_loops {
  harness::limit_loop reading;
  harness::product_loop by_bfloat16, by_float;

  double seconds_reading(std::size_t element, std::size_t threads) const {
    return seconds_of(element, threads, [&](const part& p) { ::reading(reading, p, element)(); });
  }
  double seconds_by_bfloat16(std::size_t threads) const {
    return seconds_of(2, threads, [&](const part& p) { other(by_bfloat16, p, 2); });
  }
  double seconds_by_float(std::size_t threads) const {
    return seconds_of(4, threads, [&](const part& p) { other(by_float, p, 4); });
  }
  std::string names() const {
    return std::string("limit: ") + reading.name + "; bfloat16: " + by_bfloat16.name + "; float: " + by_float.name;
  }
};

// Tried once, all in turn, by their best times.
const strongest_loops& strongest(std::size_t threads) {
  static std::map<std::size_t, strongest_loops> known;
  const auto found = known.find(threads);
  if (found != known.end()) return found->second;

  struct entry {
    strongest_loops loops;
    double reading = 1e9, by_bfloat16 = 1e9, by_float = 1e9;
  } best;
  const auto try_out = [](const auto& loop, auto& kept, double& least, double seconds) {
    if (seconds >= least) return;
    kept = loop;
    least = seconds;
  };
  const harness::limit_loops readers = harness::loops_here({2, 0});
  for (int round = 0; round < 5; ++round) {
    strongest_loops candidate;
    for (std::size_t i = 0; i < readers.count; ++i) {
      candidate.reading = readers.loops[i];
      if (reading(candidate.reading, {nullptr, 0, rows() / threads}, 1).fits())
        try_out(candidate.reading, best.loops.reading, best.reading, candidate.seconds_reading(1, threads));
    }
    for (const harness::product_loop& loop : harness::bfloat16_loops()) {
      candidate.by_bfloat16 = loop;
      if (loop.runs_here())
        try_out(loop, best.loops.by_bfloat16, best.by_bfloat16, candidate.seconds_by_bfloat16(threads));
    }
    for (const harness::product_loop& loop : harness::float_loops()) {
      candidate.by_float = loop;
      if (loop.runs_here()) try_out(loop, best.loops.by_float, best.by_float, candidate.seconds_by_float(threads));
    }
  }
  return known.emplace(threads, best.loops).first->second;
}

// -- gemv -------------------------------------------------------------------------------------------------------------

// Runs `time` (the seconds of a matrix), reading of the same bytes, and the other types' products in turn, on a matrix
// each. Counters, all of them medians:
//   ms                            milliseconds a matrix
//   ns, limit_ns, of_limit, bytes, bytes_per_second    as of every benchmark; elements and bytes are the weights'
//   times_bfloat16, times_float   the time of one column with such weights, over the time of the kernel
template <class Time>
void in_turn(const harness::run& run, std::size_t element, std::size_t threads, bool compared, const Time& time) {
  const strongest_loops& loops = strongest(threads);
  const double elements = static_cast<double>(rows() * cols), bytes = elements * static_cast<double>(element);
  std::vector<double> seconds, limit, of_limit, times_bfloat16, times_float;
  time();  // warm
  while (run.state.KeepRunning()) {
    seconds.push_back(time());
    limit.push_back(loops.seconds_reading(element, threads));
    of_limit.push_back(limit.back() / seconds.back());
    if (compared) {
      times_bfloat16.push_back(loops.seconds_by_bfloat16(threads) / seconds.back());
      times_float.push_back(loops.seconds_by_float(threads) / seconds.back());
    }
    run.state.SetIterationTime(seconds.back());
  }
  auto& counters = run.state.counters;
  const double typical = harness::median(seconds);
  counters["ms"] = 1e3 * typical;
  counters["ns"] = 1e9 * typical / elements;
  counters["limit_ns"] = 1e9 * harness::median(limit) / elements;
  counters["of_limit"] = harness::median(of_limit);
  counters["bytes"] = bytes;
  counters["bytes_per_second"] = bytes / typical;
  if (compared) {
    counters["times_bfloat16"] = harness::median(times_bfloat16);
    counters["times_float"] = harness::median(times_float);
  }
  run.state.SetLabel(loops.names());
}

std::string name_of(const std::string& what, std::size_t threads) {
  return harness::path({"gemv", what, "threads:" + std::to_string(threads), harness::mem().name});
}

template <class F, class T, class Granularity>
void add(const char* granularity, std::size_t columns, std::size_t threads, std::size_t row = harness::best_row) {
  const std::string what = harness::path({harness::name_of<F>, harness::name_of<T>, granularity});
  harness::add(
      name_of(columns == 1 ? what : what + "/M:" + std::to_string(columns), threads),
      [columns, threads](const harness::run& run) {
        in_turn(run, 1, threads, true,
                [=] { return seconds_of(1, threads, [=](const part& p) { fp8<F, T, Granularity>(p, columns); }); });
      },
      row);
}

void add_others(std::size_t threads) {
  harness::add(name_of("bfloat16", threads), [threads](const harness::run& run) {
    in_turn(run, 2, threads, false, [=] { return strongest(threads).seconds_by_bfloat16(threads); });
  });
  harness::add(name_of("float", threads), [threads](const harness::run& run) {
    in_turn(run, 4, threads, false, [=] { return strongest(threads).seconds_by_float(threads); });
  });
}

// -- dot and axpy -----------------------------------------------------------------------------------------------------

template <class F, class T>
void add_dot(std::size_t n) {
  const std::string count = "n:" + std::to_string(n);
  harness::add(harness::path({"dot", harness::name_of<F>, harness::name_of<T>, count, harness::l1().name}),
               [n](const harness::run& run) {
                 const auto arrays = harness::lay_out<F, T>(n);  // one after the other
                 harness::fill(arrays.out, n, harness::normal);
                 harness::against_limit(run, n, {{arrays.in, nullptr, n * (1 + sizeof(T)), 0}},
                                        [=] { benchmark::DoNotOptimize(octet::dot(arrays.in, arrays.out, n)); });
               });
}

// The limit reads the codes, then reads and writes the sums: it leaves some of them in the places of others.
template <class F>
void add_axpy(std::size_t n) {
  const std::string count = "n:" + std::to_string(n);
  harness::add(
      harness::path({"axpy", harness::name_of<F>, "float", count, harness::l1().name}), [n](const harness::run& run) {
        const auto arrays = harness::lay_out<F, float>(n);
        float* const y = arrays.out;
        harness::fill(y, n, harness::normal);
        harness::against_limit(run, n, {{arrays.in, nullptr, n, 0}, {y, y, 4 * n, 4 * n}},
                               [=] { octet::axpy(1e-6f, arrays.in, y, n); });
        const double bytes = 9 * static_cast<double>(n);
        run.state.counters["bytes_per_second"] = 1e9 * bytes / (static_cast<double>(n) * run.state.counters["ns"]);
        run.state.counters["bytes"] = bytes;
      });
}

}  // namespace

void harness::register_benchmarks() {
  for (const std::size_t threads : {std::size_t{1}, std::size_t{2}}) {
    ::add<e4m3, float, per_tensor>("per_tensor", 1, threads);
    ::add<e5m2, float, per_tensor>("per_tensor", 1, threads);
    ::add<e4m3, bfloat16, per_tensor>("per_tensor", 1, threads);
    ::add<e4m3, float, blocks>("128x128", 1, threads);
    for (const std::size_t columns : {std::size_t{2}, std::size_t{4}, std::size_t{8}})
      ::add<e4m3, float, per_tensor>("per_tensor", columns, threads);
    for_each_row([threads](std::size_t row) {
      if (octet::simd::row_name(row) == std::string("avx2"))
        ::add<e4m3, float, per_tensor>("per_tensor", 1, threads, row);
    });
    add_others(threads);
  }
  for (const std::size_t n : {std::size_t{128}, std::size_t{4096}}) {
    add_dot<e4m3, float>(n);
    add_dot<e4m3, bfloat16>(n);
    add_axpy<e4m3>(n);
  }
}
