// Kernels whose instructions the law reads: a source and a format each, for one GPU.
// SPDX-License-Identifier: MIT
#include "octet/cuda/kernels.cuh"

using namespace octet;

template cudaError_t octet::cuda::encode(const float*, e4m3*, std::size_t, cudaStream_t, overflow);
template cudaError_t octet::cuda::encode(const bfloat16*, e5m2*, std::size_t, cudaStream_t, overflow);
template cudaError_t octet::cuda::decode(const e4m3*, float*, std::size_t, cudaStream_t);
