// Kernels whose instructions the law reads: a source and a format each, for one GPU.
// SPDX-License-Identifier: MIT
#include "octet/cuda/paged.cuh"
#include "octet/cuda/transpose.cuh"

using octet::bfloat16;
using octet::e4m3;
using octet::e5m2;
using octet::matrix_view;

cudaError_t start(const float* x, const bfloat16* y, e4m3* a, e5m2* b, float* back, octet::descale* d,
                  const std::int64_t* slots, std::size_t n) {
  octet::cuda::encode(x, a, n);
  octet::cuda::encode(y, b, n);
  octet::cuda::decode(a, back, n);
  const octet::descale* const given = d;
  octet::cuda::quantize_into(matrix_view(y, n, n), octet::per_tensor{}, given, matrix_view(a, n, n));
  octet::cuda::dequantize_into(matrix_view(a, n, n), octet::per_tensor{}, given, matrix_view(back, n, n));
  octet::cuda::quantize_into(matrix_view(y, n, n), octet::per_block<1, 128>{}, octet::scale_rule(),
                             matrix_view(a, n, n), d);
  octet::cuda::quantize_into(matrix_view(y, n, n), octet::per_tensor{}, octet::scale_rule(), matrix_view(a, n, n), d,
                             back);
  octet::cuda::quantize_transposed_into(matrix_view(y, n, n), octet::per_block<1, 128>{}, octet::scale_rule(),
                                        matrix_view(a, n, n), d);
  octet::cuda::quantize_with_transpose_into(matrix_view(y, n, n), octet::per_block<1, 128>{}, octet::scale_rule(),
                                            matrix_view(a, n, n), d, matrix_view(a + n * n, n, n), d + n * n);
  return octet::cuda::append_into(matrix_view(y, n, n), slots, octet::cuda::paged_cache<e4m3>(a, 1, n, 1, n),
                                  octet::scale_rule(), d);
}
