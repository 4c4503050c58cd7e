// Every launcher once, for the law to compile and link for each generation of GPUs.
// SPDX-License-Identifier: MIT
#include "octet/cuda/paged.cuh"
#include "octet/cuda/transpose.cuh"

using octet::matrix_view;

cudaError_t start(const octet::bfloat16* x, octet::e4m3* q, octet::bfloat16* back, octet::descale* d, octet::e8m0* e,
                  float* amax, const std::int64_t* slots, std::size_t n) {
  namespace gpu = octet::cuda;
  const matrix_view in(x, n, n);
  const matrix_view out(q, n, n), transposed(q + n * n, n, n);
  const octet::scale_rule rule, power_of_two(octet::descale_form::e8m0_up);
  const octet::descale* const given = d;
  const octet::per_tensor whole;
  const octet::per_block<1, 32> blocks;
  const gpu::paged_cache<octet::e4m3> cache(q, 1, n, 1, n);
  for (const cudaError_t error :
       {gpu::encode(x, q, n), gpu::decode(q, back, n), gpu::amax(x, n, amax),
        gpu::quantize_into(in, octet::per_token{}, rule, out, d),
        gpu::quantize_into(in, blocks, power_of_two, out, gpu::swizzled_128x4(e, n / 32)),
        gpu::quantize_into(in, whole, rule, out, d, amax), gpu::quantize_into(in, whole, given, out),
        gpu::dequantize_into(out, whole, given, matrix_view(back, n, n)),
        gpu::quantize_transposed_into(in, blocks, rule, out, gpu::column_major(d, n)),
        gpu::quantize_transposed_into(in, whole, given, out),
        gpu::quantize_with_transpose_into(in, blocks, power_of_two, out, e, transposed, e + n * n / 32),
        gpu::quantize_with_transpose_into(in, octet::per_block<1, 128>{}, rule, out, d, transposed, d + n * n / 128),
        gpu::quantize_with_transpose_into(in, whole, given, out, given, transposed),
        gpu::append_into(in, slots, cache, rule, d), gpu::append_into(in, slots, cache, whole, given)})
    if (error != cudaSuccess) return error;
  return cudaSuccess;
}
