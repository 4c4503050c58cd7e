// What lies in the arrays: normal values, and those that make slow kernels slower.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "octet/octet.hpp"

namespace harness {

struct distribution {
  const char* name;
  float (*draw)(std::mt19937&);
};

namespace draws {

inline float from_bits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline float normal(std::mt19937& random) { return std::normal_distribution<float>()(random); }
// 2^-14 to 2^10 with any sign: subnormals, zeros and saturation of E4M3 among them.
inline float log_uniform(std::mt19937& random) {
  const float magnitude = std::exp2(std::uniform_real_distribution<float>(-14, 10)(random));
  return random() % 2 != 0 ? -magnitude : magnitude;
}
inline float mostly_zeros(std::mt19937& random) { return random() % 10 != 0 ? 0.0f : normal(random); }
// Subnormal floats, on which many instructions take a slow path; all of them are far below the least fp8.
inline float denormals(std::mt19937& random) {
  return from_bits((static_cast<std::uint32_t>(random()) & 0x807fffffu) | 1);
}
inline float some_nans(std::mt19937& random) {
  return random() % 100 == 0 ? std::numeric_limits<float>::quiet_NaN() : normal(random);
}
inline float any_bits(std::mt19937& random) { return from_bits(static_cast<std::uint32_t>(random())); }

}  // namespace draws

inline constexpr distribution normal{"normal", draws::normal};
inline constexpr distribution distributions[] = {
    normal,
    {"log-uniform", draws::log_uniform},
    {"90 % zeros", draws::mostly_zeros},
    {"denormals", draws::denormals},
    {"1 % NaN", draws::some_nans},
    {"random bits", draws::any_bits},
};

// n values of type T into out: up to 2^20 drawn ones, then the same again. Codes are those of values times 64.
template <class T>
void fill(T* out, std::size_t n, const distribution& values) {
  const std::size_t drawn = std::min(n, std::size_t{1} << 20);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < drawn; ++i) {
    const float x = values.draw(random);
    if constexpr (octet::is_fp8_v<T>)
      out[i] = octet::encode<T>(64 * x);
    else
      out[i] = static_cast<T>(x);
  }
  for (std::size_t i = drawn; i < n; i += drawn) std::memcpy(out + i, out, std::min(drawn, n - i) * sizeof(T));
}

}  // namespace harness
