// The device's division by way of the reciprocal, for every divisor, at every tie: what its proof leaves to trying.
// SPDX-License-Identifier: MIT
#include <atomic>

#include "../formats.hpp"
#include "catch.hpp"
#include "octet/cuda/slices.cuh"
#include "reference.hpp"

namespace {

constexpr std::uint32_t significands = 1u << 23, chunks = 256;
constexpr int ties = 32, around = 3;

// Wrong quotients of the divisors 1 + i / 2^23 of one chunk: near every product with a number of 6 significant bits.
std::uint64_t wrong_in(std::uint32_t chunk) {
  std::uint64_t wrong = 0;
  for (std::uint32_t i = chunk * (significands / chunks); i < (chunk + 1) * (significands / chunks); ++i) {
    const float d = octet::bit_cast<float>(0x3F800000u + i), r = 1 / d;
    for (int t = 0; t < ties; ++t) {
      const float middle = (1 + static_cast<float>(t) / ties) * d;
      for (int k = -around; k <= around; ++k) {
        const float x = octet::bit_cast<float>(octet::bit_cast<std::uint32_t>(middle) + static_cast<std::uint32_t>(k));
        wrong += octet::cuda::detail::quotient_by_reciprocal(x, d, r) != x / d ? 1 : 0;
      }
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("A quotient by the reciprocal is the nearest float at every tie of every divisor") {
  std::atomic<std::uint64_t> wrong{0};
  const unsigned step = reference::every();
  reference::share(chunks / step, [&](unsigned chunk) { wrong += wrong_in(chunk * step); });
  std::printf("%llu quotients, %llu wrong\n",
              static_cast<unsigned long long>(significands / chunks) * (chunks / step) * ties * (2 * around + 1),
              static_cast<unsigned long long>(wrong.load()));
  CHECK(wrong.load() == 0);
}

TEST_CASE("Codes are those of the division for every descale, for values that are huge, tiny, zero and not finite") {
  namespace kernels = octet::cuda::detail;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float d : {0x1p-126f, 0x1p-65f, 0x1p-64f, 0.00683594f, 1.0f, 3.0f, 0x1p64f, 0x1.8p64f, 0x1p126f})
    for (const float ratio : {0.0f, 0x1p-40f, 0x1p-11f, 0x1.8p-10f, 1.0f, 447.0f, 0x1p19f, 0x1p20f, infinity})
      for (const float x :
           {ratio * d, -ratio * d, 0x1p-149f, 0x1.fffffep127f, std::numeric_limits<float>::quiet_NaN()}) {
        const octet::group_scale s = octet::scale_of(octet::descale(d), octet::scaling::divide);
        CAPTURE(x, d);
        CHECK(kernels::quantize_one<octet::e4m3>(x, s).bits() == octet::e4m3(x / d).bits());
        CHECK(kernels::quantize_one<octet::e5m2>(x, s).bits() == octet::e5m2(x / d).bits());
      }
}
