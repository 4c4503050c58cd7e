// What the exhaustive tests compare with: NVIDIA's host conversions where cuda_fp8.h is installed, and their digests.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <type_traits>
#include <vector>

#include "octet/convert.hpp"
#if OCTET_TEST_CUDA_FP8
#include <cuda_fp8.h>
#endif

namespace reference {

#if OCTET_TEST_CUDA_FP8
inline constexpr bool has_header = true;
inline constexpr const char* name = "cuda_fp8.h and the digests recorded from it";

template <class F>
inline constexpr __nv_fp8_interpretation_t interpretation = std::is_same_v<F, octet::e4m3> ? __NV_E4M3 : __NV_E5M2;

inline __nv_saturation_t saturation(octet::overflow o) {
  return o == octet::overflow::saturate ? __NV_SATFINITE : __NV_NOSAT;
}
template <class F>
std::uint8_t encode(float x, octet::overflow o) {
  return __nv_cvt_float_to_fp8(x, saturation(o), interpretation<F>);
}
template <class F>
std::uint8_t encode(double x, octet::overflow o) {
  return __nv_cvt_double_to_fp8(x, saturation(o), interpretation<F>);
}
template <class F>
std::uint8_t encode(octet::float16 x, octet::overflow o) {
  __half_raw raw;
  raw.x = x.bits();
  return __nv_cvt_halfraw_to_fp8(raw, saturation(o), interpretation<F>);
}
template <class F>
std::uint8_t encode(octet::bfloat16 x, octet::overflow o) {
  __nv_bfloat16_raw raw;
  raw.x = x.bits();
  return __nv_cvt_bfloat16raw_to_fp8(raw, saturation(o), interpretation<F>);
}
#else
inline constexpr bool has_header = false;
inline constexpr const char* name = "the digests recorded from cuda_fp8.h (the header is not installed)";

// Never called: the digests stand in.
template <class F, class T>
std::uint8_t encode(T, octet::overflow) {
  return 0;
}
#endif

// The digest of a row of codes: eight at a time, the first in the low byte, whatever the machine's byte order.
class digest {
 public:
  void add(const std::uint8_t* codes, std::size_t n) {  // n: a multiple of 8
    for (std::size_t i = 0; i < n; i += 8) {
      std::uint64_t word = 0;
      for (unsigned j = 0; j < 8; ++j) word |= std::uint64_t{codes[i + j]} << (8 * j);
      state = (state ^ word) * 0x9E3779B97F4A7C15u;
      state ^= state >> 32;
    }
  }
  std::uint64_t value() const { return state; }

 private:
  std::uint64_t state = 0x243F6A8885A308D3;
};

// Calls work(i) for 0 <= i < n on all processors; each i belongs to one thread alone.
template <class Work>
void share(unsigned n, Work&& work) {
  const unsigned threads = std::thread::hardware_concurrency() < 2 ? 2 : std::thread::hardware_concurrency();
  std::vector<std::thread> pool;
  for (unsigned t = 0; t < threads; ++t) {
    pool.emplace_back([&work, n, t, threads] {
      for (unsigned i = t; i < n; i += threads) work(i);
    });
  }
  for (std::thread& thread : pool) thread.join();
}

// OCTET_TEST_EVERY=n: one piece of work in n, for slow (emulated) machines. 1 by default: everything.
inline unsigned every() {
  const char* text = std::getenv("OCTET_TEST_EVERY");
  const int n = text == nullptr ? 1 : std::atoi(text);
  return n < 1 ? 1 : static_cast<unsigned>(n);
}

}  // namespace reference
