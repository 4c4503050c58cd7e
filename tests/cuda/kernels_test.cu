// The launchers against octet::encode and octet::decode of one value, over lengths, alignments and bad arguments.
// SPDX-License-Identifier: MIT
#include <cstring>
#include <limits>

#include "device.hpp"
#include "octet/bulk.hpp"
#include "octet/cuda/kernels.cuh"

namespace {

using octet::overflow;
namespace gpu = octet::cuda;

template <class T>
std::vector<T> some_values(std::size_t n) {
  std::vector<T> x;
  std::uint32_t bits = 1;
  for (std::size_t i = 0; i < n; ++i) {
    bits = bits * 1664525u + 1013904223u;
    x.push_back(T(octet::bit_cast<float>((bits & 0x8FFFFFFFu) | 0x38000000u)));
  }
  return x;
}

template <class T>
bool same_bits(const T* a, const T* b, std::size_t n) {
  return n == 0 || std::memcmp(static_cast<const void*>(a), b, n * sizeof(T)) == 0;
}

// n values `in` elements behind an aligned address to codes `out` behind one, and back; what lies beside stays.
template <class F, class T>
bool round_trip(std::size_t n, std::size_t in, std::size_t out, overflow o) {
  const std::vector<T> x = some_values<T>(in + n + 20);
  device::buffer<T> from(x), back(std::vector<T>(in + n + 20, T(0.0f)));
  device::buffer<F> codes(std::vector<F>(out + n + 20, F::from_bits(0x2A)));
  if (gpu::encode(from.data() + in, codes.data() + out, n, nullptr, o) != cudaSuccess) return false;
  if (gpu::decode(codes.data() + out, back.data() + in, n) != cudaSuccess) return false;
  std::vector<F> expected_codes(out + n + 20, F::from_bits(0x2A));
  std::vector<T> expected(in + n + 20, T(0.0f));
  for (std::size_t i = 0; i < n; ++i) {
    expected_codes[out + i] = octet::encode<F>(x[in + i], o);
    expected[in + i] = octet::decode<T>(expected_codes[out + i]);
  }
  return same_bits(codes.values().data(), expected_codes.data(), expected_codes.size()) &&
         same_bits(back.values().data(), expected.data(), expected.size());
}

template <class F, class T>
void every_shape() {
  std::size_t wrong = 0;
  for (const std::size_t n : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 100, 255, 256, 300, 4095, 4096, 4097, 70001})
    for (const std::size_t in : {0, 1, 4})
      for (const std::size_t out : {0, 3, 16})
        for (const overflow o : {overflow::saturate, overflow::nonfinite})
          wrong += round_trip<F, T>(n, in, out, o) ? 0 : 1;
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("encode and decode write what their values convert to, wherever they lie, and nothing beside") {
  every_shape<octet::e4m3, float>();
  every_shape<octet::e5m2, octet::bfloat16>();
  every_shape<octet::e4m3, octet::float16>();
  every_shape<octet::e4m3fnuz, float>();
}

namespace {

template <class T>
std::size_t wrong_amaxes(octet::nonfinite policy) {
  std::size_t wrong = 0;
  for (const std::size_t n : {1, 2, 15, 16, 17, 255, 4097, 70001, 300000})
    for (const std::size_t first : {0, 1}) {
      std::vector<T> x = some_values<T>(n + first);
      for (const int special : {0, 1, 2}) {  // none, an infinity, a NaN
        if (special > 0)
          x[first + n * static_cast<std::size_t>(special) / 3] =
              T(special == 1 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN());
        const device::buffer<T> from(x);
        device::buffer<float> found(std::vector<float>{7.0f});
        if (gpu::amax(from.data() + first, n, found.data(), nullptr, policy) != cudaSuccess) return 1;
        const float expected = octet::amax(x.data() + first, n, policy), amax = found.values()[0];
        wrong += same_bits(&expected, &amax, 1) ? 0 : 1;
      }
    }
  return wrong;
}

}  // namespace

TEST_CASE("amax is the host's, whatever is among the values") {
  for (const octet::nonfinite policy : {octet::nonfinite::propagate, octet::nonfinite::ignore}) {
    CHECK(wrong_amaxes<float>(policy) == 0);
    CHECK(wrong_amaxes<octet::bfloat16>(policy) == 0);
    CHECK(wrong_amaxes<octet::float16>(policy) == 0);
  }
  device::buffer<float> found(std::vector<float>{7.0f});
  CHECK(gpu::amax(static_cast<const float*>(nullptr), 0, found.data()) == cudaSuccess);
  CHECK(found.values()[0] == 0);
  CHECK(gpu::amax(static_cast<const float*>(nullptr), 3, found.data()) == cudaErrorInvalidValue);
  CHECK(gpu::amax(found.data(), 1, found.data()) == cudaErrorInvalidValue);
  CHECK(gpu::amax(found.data(), static_cast<std::size_t>(-1) / 2, found.data()) == cudaErrorInvalidValue);
}

TEST_SUITE("large") {
  TEST_CASE("More than 2^31 values are encoded to the last") {
    constexpr std::size_t n = std::size_t{262144} * 14336;
    std::size_t available = 0, total = 0;
    REQUIRE(cudaMemGetInfo(&available, &total) == cudaSuccess);
    if (available < 4 * n) {
      MESSAGE("left out: it takes a device with 15 GB");
      return;
    }
    device::buffer<octet::bfloat16> x(n);
    device::buffer<octet::e4m3> codes(n);
    REQUIRE(cudaMemset(x.data(), 0x3F, 2 * n) == cudaSuccess);  // 0.746
    REQUIRE(gpu::encode(x.data(), codes.data(), n) == cudaSuccess);
    for (const std::size_t i : {std::size_t{0}, (std::size_t{1} << 31) - 1, std::size_t{1} << 31, n - 1}) {
      octet::e4m3 code{};
      REQUIRE(cudaMemcpy(&code, codes.data() + i, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
      CHECK(code.bits() == octet::e4m3(octet::bfloat16::from_bits(0x3F3F)).bits());
    }
  }
}

TEST_CASE("What cannot be done is refused, and nothing is written") {
  device::buffer<float> x(some_values<float>(64));
  device::buffer<octet::e4m3> codes(std::vector<octet::e4m3>(64, octet::e4m3::from_bits(0x11)));
  const float* const nothing = nullptr;
  CHECK(gpu::encode(nothing, codes.data(), 0) == cudaSuccess);
  CHECK(gpu::encode(nothing, codes.data(), 64) == cudaErrorInvalidValue);
  CHECK(gpu::encode(x.data(), static_cast<octet::e4m3*>(nullptr), 64) == cudaErrorInvalidValue);
  const auto* const odd = reinterpret_cast<const float*>(reinterpret_cast<const char*>(x.data()) + 2);
  CHECK(gpu::encode(odd, codes.data(), 8) == cudaErrorMisalignedAddress);
  CHECK(gpu::encode(x.data(), reinterpret_cast<octet::e4m3*>(x.data()) + 4, 16) == cudaErrorInvalidValue);
  CHECK(gpu::decode(codes.data(), reinterpret_cast<float*>(codes.data()), 4) == cudaErrorInvalidValue);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (const octet::e4m3 code : codes.values()) CHECK(code.bits() == 0x11);
}

TEST_CASE("A launcher can be captured in a graph, and replayed") {
  device::buffer<float> x(some_values<float>(1000));
  device::buffer<octet::e4m3> codes(std::vector<octet::e4m3>(1000, octet::e4m3{}));
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(gpu::encode(x.data(), codes.data(), 1000, stream) == cudaSuccess);
  cudaGraph_t graph;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphExec_t ready;
  REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(ready, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  const std::vector<float> values = x.values();
  const std::vector<octet::e4m3> found = codes.values();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < 1000; ++i) wrong += found[i].bits() != octet::e4m3(values[i]).bits() ? 1 : 0;
  CHECK(wrong == 0);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}
