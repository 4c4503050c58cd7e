// What a kernel uses: the types and single conversions on the device, in constant expressions and not, and bulk on the host.
// SPDX-License-Identifier: MIT
#include "octet/octet.hpp"

static_assert(octet::encode<octet::e4m3>(1.0f).bits() == 0x38);
static_assert(sizeof(octet::e5m2) == 1 && octet::e5m2{}.bits() == 0);

template <class F>
__global__ void round_trip(const float* in, F* codes, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  constexpr F one(1.0f);
  F q = octet::encode<F>(in[i]);
  const F r = octet::encode<F>(static_cast<double>(in[i]), octet::overflow::nonfinite);
  if (isnan(r) || q < one) q = nextafter(q, one);
  if (q == octet::encode_stochastic<F>(in[i], static_cast<std::uint32_t>(i))) q = F(static_cast<float>(q));
  codes[i] = q;
  out[i] = octet::decode(q) + static_cast<float>(octet::decode<double>(q)) + static_cast<float>(static_cast<int>(q)) +
           static_cast<float>(octet::decode<octet::bfloat16>(q));
}

template <class F>
void launch(const float* in, F* codes, float* out, int n) {
  round_trip<F><<<(n + 255) / 256, 256>>>(in, codes, out, n);
}

template void launch<octet::e4m3>(const float*, octet::e4m3*, float*, int);
template void launch<octet::e5m2>(const float*, octet::e5m2*, float*, int);
template void launch<octet::e4m3fnuz>(const float*, octet::e4m3fnuz*, float*, int);
template void launch<octet::p3109_p3>(const float*, octet::p3109_p3*, float*, int);
template void launch<octet::e2m1>(const float*, octet::e2m1*, float*, int);
template void launch<octet::e8m0>(const float*, octet::e8m0*, float*, int);

void on_the_host(const float* in, octet::e4m3* codes, float* out, std::size_t n) {
  octet::encode(in, codes, n);
  octet::decode(codes, out, n);
}
