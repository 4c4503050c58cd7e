// Rows of the casts and of amax: every kind of values with both formats, against a copy of the same bytes.
// SPDX-License-Identifier: MIT
#include "octet/cuda/kernels.cuh"
#include "row.hpp"

namespace cuda_bench {
namespace {

using octet::bfloat16;
using octet::e4m3;
using octet::e5m2;
using octet::float16;

// As many elements as the bytes of a turn have room for; a multiple of 16.
std::size_t elements(const arena& a, std::size_t bytes_each) { return a.moved() / bytes_each / 16 * 16; }
std::string words(std::size_t n) { return std::to_string(n); }

contest copy(arena& a) {
  const auto bytes = static_cast<double>(a.moved());
  a.begin(a.moved());
  return {words(a.moved() / 2) + " bytes", bytes, 0, a.copy_of(bytes), a.copy_of(bytes)};
}

template <class T, class F>
contest encode(arena& a) {
  const std::size_t n = elements(a, sizeof(T) + 1), bytes = n * (sizeof(T) + 1);
  a.begin(bytes);
  const turns<T> x = a.drawn<T>(n);
  const turns<F> codes = a.room<F>(n);
  return {words(n), static_cast<double>(bytes), 0,
          [=](std::size_t turn, cudaStream_t stream) { return octet::cuda::encode(x[turn], codes[turn], n, stream); },
          a.copy_of(static_cast<double>(bytes))};
}

template <class T, class F>
contest decode(arena& a) {
  const std::size_t n = elements(a, sizeof(T) + 1), bytes = n * (sizeof(T) + 1);
  a.begin(bytes);
  const turns<F> codes = a.drawn<F>(n);
  const turns<T> x = a.room<T>(n);
  return {words(n), static_cast<double>(bytes), 0,
          [=](std::size_t turn, cudaStream_t stream) { return octet::cuda::decode(codes[turn], x[turn], n, stream); },
          a.copy_of(static_cast<double>(bytes))};
}

template <class T>
contest amax(arena& a) {
  const std::size_t n = elements(a, sizeof(T)), bytes = n * sizeof(T);
  a.begin(bytes);
  const turns<T> x = a.drawn<T>(n);
  const turns<float> found = a.room<float>(1);
  return {words(n), static_cast<double>(bytes), 0,
          [=](std::size_t turn, cudaStream_t stream) { return octet::cuda::amax(x[turn], n, found[turn], stream); },
          a.copy_of(static_cast<double>(bytes))};
}

constexpr double goal = 0.9;

}  // namespace

void add_conversions(std::vector<row>& rows) {
  const row all[] = {
      {"cuda/copy", 0, copy},
      {"cuda/encode/float/e4m3", goal, encode<float, e4m3>},
      {"cuda/encode/float/e5m2", goal, encode<float, e5m2>},
      {"cuda/encode/float16/e4m3", goal, encode<float16, e4m3>},
      {"cuda/encode/float16/e5m2", goal, encode<float16, e5m2>},
      {"cuda/encode/bfloat16/e4m3", goal, encode<bfloat16, e4m3>},
      {"cuda/encode/bfloat16/e5m2", goal, encode<bfloat16, e5m2>},
      {"cuda/decode/e4m3/float", goal, decode<float, e4m3>},
      {"cuda/decode/e5m2/float", goal, decode<float, e5m2>},
      {"cuda/decode/e4m3/float16", goal, decode<float16, e4m3>},
      {"cuda/decode/e5m2/float16", goal, decode<float16, e5m2>},
      {"cuda/decode/e4m3/bfloat16", goal, decode<bfloat16, e4m3>},
      {"cuda/decode/e5m2/bfloat16", goal, decode<bfloat16, e5m2>},
      {"cuda/amax/float", 0, amax<float>},
      {"cuda/amax/float16", 0, amax<float16>},
      {"cuda/amax/bfloat16", 0, amax<bfloat16>},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace cuda_bench
