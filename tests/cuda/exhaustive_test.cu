// Every float through the device's encoders, by the instruction and by integers, against the codes of the host.
// SPDX-License-Identifier: MIT
// The host's are those of the bulk encoder, whose bytes tests/exhaustive compares with cuda_fp8.h; on a GPU that header's
// device code is asked too.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#define OCTET_TEST_CUDA_FP8 1
#include "../exhaustive/reference.hpp"
#include "device.hpp"
#include "octet/bulk.hpp"
#include "octet/cuda/kernels.cuh"

namespace {

using octet::overflow;

constexpr std::uint64_t floats = std::uint64_t{1} << 32;
constexpr std::size_t chunk = std::size_t{1} << 24;

// tests/cuda/run says so: an emulator takes minutes for what a GPU does in seconds.
bool emulated() { return std::getenv("OCTET_TEST_EMULATED") != nullptr; }

// OCTET_TEST_EVERY=n: one float in n goes by integers. By default all of them, one in 7 where that is emulated: the
// multiples of an odd number end in all bits.
std::uint64_t one_in() {
  if (std::getenv("OCTET_TEST_EVERY") != nullptr) return reference::every();
  return emulated() ? 7 : 1;
}

// How many of n codes are not those of NVIDIA's header, in device code.
template <class F>
__global__ void compare(const float* x, const F* codes, std::size_t n, __nv_saturation_t saturation,
                        __nv_fp8_interpretation_t format, unsigned long long* differences) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n && __nv_cvt_float_to_fp8(x[i], saturation, format) != codes[i].bits()) atomicAdd(differences, 1ull);
}

struct found {
  std::uint64_t compared = 0, differ_from_host = 0, differ_from_header = 0;
};

// The floats whose bits are multiples of `step`.
template <class F>
found encode_floats(overflow o, std::uint64_t step) {
  device::buffer<float> x(chunk);
  device::buffer<F> codes(chunk);
  device::buffer<unsigned long long> differences(std::vector<unsigned long long>(1, 0));
  std::vector<float> values(chunk);
  std::vector<F> host(chunk), from_device(chunk);
  found all;
  const std::uint64_t count = (floats + step - 1) / step;
  for (std::uint64_t first = 0; first < count; first += chunk) {
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(chunk, count - first));
    constexpr unsigned pieces = 64;
    constexpr std::size_t piece = chunk / pieces;
    reference::share(pieces, [&](unsigned number) {
      const std::size_t begin = number * piece, end = std::min(n, begin + piece);
      if (begin >= end) return;
      for (std::size_t i = begin; i < end; ++i)
        values[i] = octet::bit_cast<float>(static_cast<std::uint32_t>((first + i) * step));
      octet::encode(values.data() + begin, host.data() + begin, end - begin, o);
    });
    REQUIRE(cudaMemcpy(x.data(), values.data(), n * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(octet::cuda::encode(x.data(), codes.data(), n, nullptr, o) == cudaSuccess);
    if (!emulated()) {
      compare<<<static_cast<unsigned>((n + 255) / 256), 256>>>(x.data(), codes.data(), n, reference::saturation(o),
                                                               reference::interpretation<F>, differences.data());
      REQUIRE(cudaGetLastError() == cudaSuccess);
    }
    REQUIRE(cudaMemcpy(from_device.data(), codes.data(), n, cudaMemcpyDeviceToHost) == cudaSuccess);
    all.compared += n;
    if (std::memcmp(static_cast<const void*>(from_device.data()), host.data(), n) != 0)
      for (std::size_t i = 0; i < n; ++i) all.differ_from_host += from_device[i].bits() != host[i].bits() ? 1 : 0;
  }
  all.differ_from_header = differences.values()[0];
  return all;
}

template <class F>
void check(const char* name, overflow o, std::uint64_t step) {
  const auto start = std::chrono::steady_clock::now();
  const found all = encode_floats<F>(o, step);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s, %s: %llu floats, %llu codes are not the host's, %.1f s\n", name,
              o == overflow::saturate ? "saturating" : "nonfinite", static_cast<unsigned long long>(all.compared),
              static_cast<unsigned long long>(all.differ_from_host), seconds);
  CHECK(all.compared == (floats + step - 1) / step);
  CHECK(all.differ_from_host == 0);
  CHECK(all.differ_from_header == 0);
}

}  // namespace

TEST_CASE("All 2^32 floats have the same codes on the device as on the host, saturating") {
  check<octet::e4m3>("E4M3", overflow::saturate, 1);
  check<octet::e5m2>("E5M2", overflow::saturate, 1);
}

TEST_CASE("All floats, or one in OCTET_TEST_EVERY, have the same codes on the device as on the host, nonfinite") {
  check<octet::e4m3>("E4M3", overflow::nonfinite, one_in());
  check<octet::e5m2>("E5M2", overflow::nonfinite, one_in());
}
