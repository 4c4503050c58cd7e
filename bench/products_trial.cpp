// Products from memory: FP8 weights against the best bfloat16 and float loops and against reading alone.
// SPDX-License-Identifier: MIT
//   g++ -std=c++17 -O2 -march=native -I include bench/products_trial.cpp -pthread -o products_trial
//   ./products_trial [rounds [kernels whose name holds this]]
//
// Every kernel goes over a buffer of more than 1 GiB, a matrix [16384, 4096] of its own type at a time, so that no
// cache holds what it reads. The kernels take turns within one process; times are the processor time of the slowest
// thread, of which median and lower quartile are printed.
#include <immintrin.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "octet/gemv.hpp"

namespace {

constexpr std::size_t rows = 16384, cols = 4096, bytes = rows * cols * 20, most_columns = 8;

// The weights, of every type: bytes 30 to 3F and B0 to BF, which make no subnormal, infinity or NaN of any.
unsigned char* weights;

alignas(64) float x[most_columns * cols];
alignas(64) octet::bfloat16 x_bf16[cols];
float y[most_columns * rows];

// -- Reading alone ---------------------------------------------------------------------------------------------------

template <int Near, int Far>
void read(const unsigned char* p, std::size_t first, std::size_t count, std::size_t) {
  __m512i a = _mm512_setzero_si512(), b = a;
  p += first * cols;
  for (const unsigned char* end = p + count * cols; p < end; p += 128) {
    if constexpr (Near != 0) {
      _mm_prefetch(reinterpret_cast<const char*>(p + Near), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(p + Near + 64), _MM_HINT_T0);
    }
    if constexpr (Far != 0) {
      _mm_prefetch(reinterpret_cast<const char*>(p + Far), _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(p + Far + 64), _MM_HINT_T1);
    }
    a = _mm512_xor_si512(a, _mm512_loadu_si512(p));
    b = _mm512_xor_si512(b, _mm512_loadu_si512(p + 64));
  }
  y[first] = static_cast<float>(_mm512_reduce_add_epi32(_mm512_xor_si512(a, b)));
}

// -- Float and bfloat16 weights --------------------------------------------------------------------------------------

// x in its order.
template <int Near, int Far>
void float_loop(const unsigned char* p, std::size_t first, std::size_t count, std::size_t) {
  for (std::size_t r = first; r < first + count; ++r) {
    const float* w = reinterpret_cast<const float*>(p) + r * cols;
    __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
    for (std::size_t i = 0; i < cols; i += 64) {
      for (int k = 0; k < 4; ++k) {
        if (Near != 0) _mm_prefetch(reinterpret_cast<const char*>(w + i + 16 * k) + Near, _MM_HINT_T0);
        if (Far != 0) _mm_prefetch(reinterpret_cast<const char*>(w + i + 16 * k) + Far, _MM_HINT_T1);
      }
      a = _mm512_fmadd_ps(_mm512_loadu_ps(w + i), _mm512_loadu_ps(x + i), a);
      b = _mm512_fmadd_ps(_mm512_loadu_ps(w + i + 16), _mm512_loadu_ps(x + i + 16), b);
      c = _mm512_fmadd_ps(_mm512_loadu_ps(w + i + 32), _mm512_loadu_ps(x + i + 32), c);
      d = _mm512_fmadd_ps(_mm512_loadu_ps(w + i + 48), _mm512_loadu_ps(x + i + 48), d);
    }
    y[r] = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)));
  }
}

// x with the even elements of every 32 before the odd ones, as shifting and masking gives them.
template <int Near, int Far>
void bf16_loop(const unsigned char* p, std::size_t first, std::size_t count, std::size_t) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  for (std::size_t r = first; r < first + count; ++r) {
    const unsigned char* w = p + r * cols * 2;
    __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
    for (std::size_t i = 0; i < cols; i += 64) {
      for (int k = 0; k < 2; ++k) {
        if (Near != 0) _mm_prefetch(reinterpret_cast<const char*>(w + 2 * i + 64 * k) + Near, _MM_HINT_T0);
        if (Far != 0) _mm_prefetch(reinterpret_cast<const char*>(w + 2 * i + 64 * k) + Far, _MM_HINT_T1);
      }
      const __m512i v = _mm512_loadu_si512(w + 2 * i), u = _mm512_loadu_si512(w + 2 * i + 64);
      a = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)), _mm512_loadu_ps(x + i), a);
      b = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(v, upper)), _mm512_loadu_ps(x + i + 16), b);
      c = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(u, 16)), _mm512_loadu_ps(x + i + 32), c);
      d = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(u, upper)), _mm512_loadu_ps(x + i + 48), d);
    }
    y[r] = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)));
  }
}

// The same by two rows at a time, which share what is loaded of x. Behind the end of a row the next pair's row begins.
template <int Near>
void bf16_pairs(const unsigned char* p, std::size_t first, std::size_t count, std::size_t) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  for (std::size_t r = first; r < first + count; r += 2) {
    __m512 sums[2][4] = {};
    for (std::size_t i = 0; i < cols; i += 64) {
      const __m512 x0 = _mm512_loadu_ps(x + i), x1 = _mm512_loadu_ps(x + i + 16);
      const __m512 x2 = _mm512_loadu_ps(x + i + 32), x3 = _mm512_loadu_ps(x + i + 48);
      const std::size_t ahead = Near + (2 * i + Near >= 2 * cols ? 2 * cols : 0);
#pragma GCC unroll 2
      for (std::size_t k = 0; k < 2; ++k) {
        const unsigned char* w = p + (r + k) * cols * 2 + 2 * i;
        _mm_prefetch(reinterpret_cast<const char*>(w + ahead), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(w + ahead + 64), _MM_HINT_T0);
        const __m512i v = _mm512_loadu_si512(w), u = _mm512_loadu_si512(w + 64);
        sums[k][0] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)), x0, sums[k][0]);
        sums[k][1] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(v, upper)), x1, sums[k][1]);
        sums[k][2] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(u, 16)), x2, sums[k][2]);
        sums[k][3] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(u, upper)), x3, sums[k][3]);
      }
    }
    for (std::size_t k = 0; k < 2; ++k)
      y[r + k] = _mm512_reduce_add_ps(
          _mm512_add_ps(_mm512_add_ps(sums[k][0], sums[k][1]), _mm512_add_ps(sums[k][2], sums[k][3])));
  }
}

// The processor's own dot product of bfloat16 pairs; it flushes subnormals.
template <int Near, int Far>
__attribute__((target("avx512bf16"))) void bf16_dot(const unsigned char* p, std::size_t first, std::size_t count,
                                                    std::size_t) {
  for (std::size_t r = first; r < first + count; ++r) {
    const unsigned char* w = p + r * cols * 2;
    const unsigned char* v = reinterpret_cast<const unsigned char*>(x_bf16);
    __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
    for (std::size_t i = 0; i < 2 * cols; i += 256) {
      for (std::size_t k = 0; k < 256; k += 64) {
        if (Near != 0) _mm_prefetch(reinterpret_cast<const char*>(w + i + k) + Near, _MM_HINT_T0);
        if (Far != 0) _mm_prefetch(reinterpret_cast<const char*>(w + i + k) + Far, _MM_HINT_T1);
      }
      const auto at = [](const unsigned char* q) { return (__m512bh)_mm512_loadu_si512(q); };
      a = _mm512_dpbf16_ps(a, at(w + i), at(v + i));
      b = _mm512_dpbf16_ps(b, at(w + i + 64), at(v + i + 64));
      c = _mm512_dpbf16_ps(c, at(w + i + 128), at(v + i + 128));
      d = _mm512_dpbf16_ps(d, at(w + i + 192), at(v + i + 192));
    }
    y[r] = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)));
  }
}

// -- FP8 weights -----------------------------------------------------------------------------------------------------

octet::descale descales[rows * cols / 128];

template <class F, class T, class Granularity>
void fp8(const unsigned char* p, std::size_t first, std::size_t count, std::size_t columns) {
  const octet::quantized_view<F, Granularity> w{
      {octet::as_codes<F>(static_cast<const void*>(p)), rows, cols}, descales, Granularity{}};
  const T* activations = nullptr;
  if constexpr (std::is_same_v<T, float>)
    activations = x;
  else
    activations = x_bf16;
  octet::gemv(w.row_range(first, count), octet::matrix_view<const T>(activations, columns, cols),
              octet::matrix_view<float>(y + first, columns, count, rows));
}

// -- Taking turns ----------------------------------------------------------------------------------------------------

struct kernel {
  const char* name;
  std::size_t element;  // bytes
  std::size_t columns;
  void (*run)(const unsigned char* matrix, std::size_t first, std::size_t count, std::size_t columns);
  std::size_t row = 0;  // of octet's rows of kernels
  std::vector<double> seconds[2];

  kernel(const char* n, std::size_t e, std::size_t m, decltype(run) r, std::size_t which = octet::simd::row_count)
      : name(n), element(e), columns(m), run(r), row(which) {}
};

double processor_time() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Each call reads what was read longest ago, whichever kernel it was.
double time_of(kernel& k, std::size_t threads) {
  static std::size_t next = 0;
  const std::size_t matrix = rows * cols * k.element;
  if (next + matrix > bytes) next = 0;
  const unsigned char* p = weights + next;
  next += matrix;
  octet::simd::pick_row(k.row);
  std::atomic<std::size_t> ready{0};
  std::vector<double> spent(threads);
  const auto work = [&](std::size_t t) {
    ++ready;
    while (ready < threads) {
    }
    const double start = processor_time();
    k.run(p, rows / threads * t, rows / threads, k.columns);
    spent[t] = processor_time() - start;
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& t : others) t.join();
  return *std::max_element(spent.begin(), spent.end());
}

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  madvise(memory, bytes, MADV_HUGEPAGE);
  weights = static_cast<unsigned char*>(memory);
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = (i + 1) * 0x9E3779B97F4A7C15u;
    word = (word ^ word >> 29) * 0xBF58476D1CE4E5B9u;
    word = ((word ^ word >> 32) & 0x8F8F8F8F8F8F8F8Fu) | 0x3030303030303030u;
    std::memcpy(weights + i, &word, 8);
  }
  for (std::size_t i = 0; i < most_columns * cols; ++i) x[i] = static_cast<float>(i * 7919 % 2003) / 1001 - 1;
  for (std::size_t i = 0; i < cols; ++i) x_bf16[i] = octet::bfloat16(x[i]);
  for (octet::descale& d : descales) d = octet::descale(0.25f);

  using octet::e4m3;
  using octet::e5m2;
  using octet::per_tensor;
  using blocks = octet::per_block<128, 128>;
  std::vector<kernel> kernels = {
      {"read", 1, 1, read<0, 0>},
      {"read, near 1k", 1, 1, read<1024, 0>},
      {"read, near 512", 1, 1, read<512, 0>},
      {"read, near 1k far 16k", 1, 1, read<1024, 16384>},
      {"float, near 1k far 16k", 4, 1, float_loop<1024, 16384>},
      {"float, near 2k", 4, 1, float_loop<2048, 0>},
      {"bf16, near 1k far 16k", 2, 1, bf16_loop<1024, 16384>},
      {"bf16, near 2k far 16k", 2, 1, bf16_loop<2048, 16384>},
      {"bf16 two rows, near 2k", 2, 1, bf16_pairs<2048>},
      {"bf16 dot, near 1k far 16k", 2, 1, bf16_dot<1024, 16384>},
      {"fp8 e4m3 M=1", 1, 1, fp8<e4m3, float, per_tensor>},
      {"fp8 e5m2 M=1", 1, 1, fp8<e5m2, float, per_tensor>},
      {"fp8 e4m3 M=1, x bf16", 1, 1, fp8<e4m3, octet::bfloat16, per_tensor>},
      {"fp8 e4m3 M=1, blocks", 1, 1, fp8<e4m3, float, blocks>},
      {"fp8 e4m3 M=2", 1, 2, fp8<e4m3, float, per_tensor>},
      {"fp8 e4m3 M=4", 1, 4, fp8<e4m3, float, per_tensor>},
      {"fp8 e4m3 M=8", 1, 8, fp8<e4m3, float, per_tensor>},
  };
  for (std::size_t row = 0; row < octet::simd::row_count; ++row)
    if (std::string(octet::simd::row_name(row)) == "avx2")
      kernels.push_back({"fp8 e4m3 M=1 avx2", 1, 1, fp8<e4m3, float, per_tensor>, row});
  if (argc > 2)
    kernels.erase(
        std::remove_if(kernels.begin(), kernels.end(),
                       [&](const kernel& k) { return std::string(k.name).find(argv[2]) == std::string::npos; }),
        kernels.end());

  for (int round = 0; round < rounds; ++round)
    for (std::size_t threads : {1u, 2u})
      for (kernel& k : kernels) k.seconds[threads - 1].push_back(time_of(k, threads));

  std::printf("%-27s %28s %28s\n", "ms a matrix (GB/s)", "1 thread: median, quartile", "2 threads: median, quartile");
  for (kernel& k : kernels) {
    const double size = static_cast<double>(rows * cols * k.element);
    std::printf("%-27s", k.name);
    for (const std::vector<double>& s : k.seconds)
      std::printf("   %7.3f (%5.1f) %7.3f (%4.1f)", 1e3 * quantile(s, 0.5), 1e-9 * size / quantile(s, 0.5),
                  1e3 * quantile(s, 0.25), 1e-9 * size / quantile(s, 0.25));
    std::printf("\n");
  }
}
