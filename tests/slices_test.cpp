// What one thread of a kernel does, run on the host: every number of values, every road, nothing beyond.
// SPDX-License-Identifier: MIT
#include "octet/cuda/slices.cuh"

#include <cstring>
#include <vector>

#include "catch.hpp"
#include "oracle.hpp"

namespace {

template <class T>
std::vector<T> any_values(std::size_t n, std::uint64_t seed) {
  oracle::random random(seed);
  std::vector<T> x;
  for (std::size_t i = 0; i < n; ++i)
    x.push_back(T(std::ldexp(static_cast<float>(random() >> 40) - 0x1p23f, -30 + static_cast<int>(random() % 16))));
  return x;
}

// All slices of n values, and one too many; what lies behind them stays as it was.
template <int N, class F, class T>
bool encodes(const std::vector<T>& x, octet::overflow o) {
  const std::size_t n = x.size();
  alignas(16) F codes[320];
  std::memset(static_cast<void*>(codes), 0x5A, sizeof codes);
  alignas(16) T from[320];
  if (n > 0) std::memcpy(static_cast<void*>(from), x.data(), n * sizeof(T));
  for (std::size_t slice = 0; slice <= n / N + 1; ++slice)
    octet::cuda::detail::encode_slice<N>(from, codes, n, slice, o);
  bool same = true;
  for (std::size_t i = 0; i < n; ++i) same = same && codes[i].bits() == octet::encode<F>(x[i], o).bits();
  for (std::size_t i = n; i < 320; ++i) same = same && codes[i].bits() == F::from_bits(0x5A).bits();
  return same;
}
template <int N, class T, class F>
bool decodes(const std::vector<F>& codes) {
  const std::size_t n = codes.size();
  alignas(16) T x[320], before[320];
  std::memset(static_cast<void*>(x), 0x5A, sizeof x);
  std::memcpy(static_cast<void*>(before), x, sizeof x);
  alignas(16) F from[320];
  if (n > 0) std::memcpy(static_cast<void*>(from), codes.data(), n * sizeof(F));
  for (std::size_t slice = 0; slice <= n / N + 1; ++slice) octet::cuda::detail::decode_slice<N>(from, x, n, slice);
  bool same = true;
  for (std::size_t i = 0; i < n; ++i) {
    const T expected = octet::decode<T>(codes[i]);
    same = same && std::memcmp(&x[i], &expected, sizeof(T)) == 0;
  }
  return same && std::memcmp(static_cast<const void*>(x + n), before + n, (320 - n) * sizeof(T)) == 0;
}

template <class F, class T>
void every_length() {
  std::size_t wrong = 0;
  for (std::size_t n = 0; n <= 300; ++n) {
    const std::vector<T> x = any_values<T>(n, n);
    wrong += encodes<16, F>(x, octet::overflow::saturate) ? 0 : 1;
    wrong += encodes<1, F>(x, octet::overflow::saturate) ? 0 : 1;
    wrong += encodes<1, F>(x, octet::overflow::nonfinite) ? 0 : 1;
    std::vector<F> codes;
    for (const T value : x) codes.push_back(F(value));
    wrong += decodes<16, T>(codes) ? 0 : 1;
    wrong += decodes<1, T>(codes) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("The slices of any number of values are their conversions, and nothing more") {
  every_length<octet::e4m3, float>();
  every_length<octet::e5m2, octet::bfloat16>();
  every_length<octet::e2m1, octet::float16>();
}
