// Kernels for the formats that only a family of GPUs converts by instructions, for the law to read.
// SPDX-License-Identifier: MIT
#include "octet/cuda/kernels.cuh"

using octet::bfloat16;
using octet::float16;

template <class F>
cudaError_t start(const float* x, const bfloat16* y, const float16* z, F* codes, float* a, bfloat16* b, float16* c,
                  std::size_t n) {
  octet::cuda::encode(x, codes, n);
  octet::cuda::encode(y, codes, n);
  octet::cuda::encode(z, codes, n);
  octet::cuda::decode(codes, a, n);
  octet::cuda::decode(codes, b, n);
  return octet::cuda::decode(codes, c, n);
}

template cudaError_t start(const float*, const bfloat16*, const float16*, octet::e8m0*, float*, bfloat16*, float16*,
                           std::size_t);
template cudaError_t start(const float*, const bfloat16*, const float16*, octet::e2m3*, float*, bfloat16*, float16*,
                           std::size_t);
template cudaError_t start(const float*, const bfloat16*, const float16*, octet::e3m2*, float*, bfloat16*, float16*,
                           std::size_t);
template cudaError_t start(const float*, const bfloat16*, const float16*, octet::e2m1*, float*, bfloat16*, float16*,
                           std::size_t);
