// Kernels whose instructions the law reads: a source and a format each, for one GPU.
// SPDX-License-Identifier: MIT
#include "octet/cuda/quantize.cuh"

using octet::bfloat16;
using octet::e4m3;
using octet::e5m2;

cudaError_t start(const float* x, const bfloat16* y, e4m3* a, e5m2* b, float* back, octet::descale* d, std::size_t n) {
  octet::cuda::encode(x, a, n);
  octet::cuda::encode(y, b, n);
  octet::cuda::decode(a, back, n);
  octet::cuda::quantize(x, n, a, n, d, 1, n);
  return octet::cuda::quantize_tokens(x, n, a, n, d, 1, n);
}
