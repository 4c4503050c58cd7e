// The loops of limits.hpp, written once and compiled once for each width of vectors, with the flags of that width.
// SPDX-License-Identifier: MIT
#pragma once

#include "limits.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace harness {
namespace {

constexpr int line = 64, page = 4096;

// -- One vector of this machine ---------------------------------------------------------------------------------------
// keep() says that a value is needed, and where: in a register. So loads stay, and nothing is computed from them.

#if defined(__AVX512F__)
using vector = __m512i;
inline void keep(vector x) { asm volatile("" : : "v"(x)); }
inline void store_past_caches(vector* to, vector x) { _mm512_stream_si512(to, x); }
#elif defined(__AVX2__)
using vector = __m256i;
inline void keep(vector x) { asm volatile("" : : "x"(x)); }
inline void store_past_caches(vector* to, vector x) { _mm256_stream_si256(to, x); }
#elif defined(__x86_64__)
using vector = __m128i;
inline void keep(vector x) { asm volatile("" : : "x"(x)); }
inline void store_past_caches(vector* to, vector x) { _mm_stream_si128(to, x); }
#elif defined(__aarch64__)
typedef long long vector __attribute__((vector_size(16), may_alias));
inline void keep(vector x) { asm volatile("" : : "w"(x)); }
inline void store_past_caches(vector* to, vector x) { *to = x; }
#else
typedef unsigned long vector __attribute__((may_alias));
inline void keep(vector x) { asm volatile("" : : "r"(x)); }
inline void store_past_caches(vector* to, vector x) { *to = x; }
#endif

inline void finish_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// -- One step ---------------------------------------------------------------------------------------------------------

enum class way { through_caches, past_caches };

// Reads Read lines and writes Written lines; asks for the lines `ahead` bytes further on (0: for none), and for those
// `far_ahead` bytes further on into the second level.
template <int Read, int Written, way Way, int FarAhead>
inline __attribute__((always_inline)) void step(const unsigned char* in, unsigned char* out, std::ptrdiff_t ahead) {
  constexpr int vectors = line / static_cast<int>(sizeof(vector));
  const vector* from = reinterpret_cast<const vector*>(in);
  vector* to = reinterpret_cast<vector*>(out);
  vector last = from[0];
#pragma GCC unroll 16
  for (int i = 0; i < Read * vectors; ++i) {
    if (i % vectors == 0 && ahead != 0) __builtin_prefetch(in + i * int{sizeof(vector)} + ahead, 0, 3);
    if (i % vectors == 0 && FarAhead != 0) __builtin_prefetch(in + i * int{sizeof(vector)} + FarAhead, 0, 2);
    last = from[i];
    keep(last);
  }
#pragma GCC unroll 16
  for (int i = 0; i < Written * vectors; ++i) {
    if constexpr (Way == way::past_caches)
      store_past_caches(to + i, last);
    else
      to[i] = last;
  }
}

// -- A whole array ----------------------------------------------------------------------------------------------------

// From the first byte to the last.
template <int Read, int Written, way Way, int Ahead, int FarAhead = 0>
void sequential(const unsigned char* in, unsigned char* out, std::size_t steps) {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < steps; ++i)
    step<Read, Written, Way, FarAhead>(in + i * (line * Read), out + i * (line * Written), Ahead);
  if (Way == way::past_caches) finish_stores();
}

// So many pages at once, a step in each in turn, and asks for the same place in the pages that come next: a core waits
// for memory rather than for its width, and several streams keep more lines under way.
template <int Read, int Written, way Way, int Streams>
void pages_at_once(const unsigned char* in, unsigned char* out, std::size_t steps) {
  constexpr int widest = Read > Written ? Read : Written;
  constexpr std::size_t a_page = page / (line * widest), a_group = a_page * Streams;
  for (; steps >= a_group; steps -= a_group) {
    for (std::size_t i = 0; i < a_page; ++i) {
#pragma GCC unroll 8
      for (std::size_t s = 0; s < Streams; ++s) {
        const std::size_t at = s * a_page + i;
        step<Read, Written, Way, 0>(in + at * (line * Read), out + at * (line * Written), a_group * line * Read);
      }
    }
    in += a_group * line * Read;
    out += a_group * line * Written;
  }
  sequential<Read, Written, Way, 0>(in, out, steps);
}

// -- The table --------------------------------------------------------------------------------------------------------

template <int Read, int Written, way Way, int Ahead, int FarAhead = 0>
constexpr limit_loop one_by_one(const char* name) {
  return {name, sequential<Read, Written, Way, Ahead, FarAhead>, 1};
}
template <int Read, int Written, way Way, int Streams>
constexpr limit_loop by_pages(const char* name) {
  return {name, pages_at_once<Read, Written, Way, Streams>, std::size_t{64} * Streams};
}

template <int Read, int Written>
struct loops_of {
  static constexpr way in = way::through_caches, past = way::past_caches;
  static constexpr limit_loop table[] = {
      one_by_one<Read, Written, in, 0>("plain"),
      one_by_one<Read, Written, in, 1024>("plain, prefetch 1 KiB"),
      by_pages<Read, Written, in, 4>("plain, 4 pages at once, prefetch"),
      one_by_one<Read, Written, past, 0>("NT"),
      one_by_one<Read, Written, past, 1024>("NT, prefetch 1 KiB"),
      by_pages<Read, Written, past, 4>("NT, 4 pages at once, prefetch"),
      by_pages<Read, Written, past, 8>("NT, 8 pages at once, prefetch"),
  };
};
template <int Read>
struct loops_of<Read, 0> {
  static constexpr way in = way::through_caches;
  static constexpr limit_loop table[] = {
      one_by_one<Read, 0, in, 0>("plain"),
      one_by_one<Read, 0, in, 1024>("prefetch 1 KiB"),
      one_by_one<Read, 0, in, 2048>("prefetch 2 KiB"),
      one_by_one<Read, 0, in, 1024, 16384>("prefetch 1 and 16 KiB"),
      by_pages<Read, 0, in, 4>("4 pages at once, prefetch"),
      by_pages<Read, 0, in, 8>("8 pages at once, prefetch"),
  };
};

template <int Read, int Written>
limit_loops listed() {
  return {loops_of<Read, Written>::table, sizeof loops_of<Read, Written>::table / sizeof(limit_loop)};
}

inline limit_loops loops_for(mix m) {
  struct {
    mix of;
    limit_loops (*loops)();
  } const table[] = {{{4, 1}, listed<4, 1>}, {{2, 1}, listed<2, 1>}, {{1, 2}, listed<1, 2>},
                     {{1, 4}, listed<1, 4>}, {{1, 1}, listed<1, 1>}, {{2, 0}, listed<2, 0>}};
  for (const auto& entry : table)
    if (entry.of.read == m.read && entry.of.written == m.written) return entry.loops();
  return {nullptr, 0};
}

}  // namespace
}  // namespace harness
