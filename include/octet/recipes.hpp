// The scale rules of the field, by name: what each tool's amax becomes, so that its descales can be met to the bit.
// SPDX-License-Identifier: MIT
#pragma once

#include "scale.hpp"

namespace octet {
inline namespace v0 {

// Each is a scale_rule to pass to quantize with the granularity named beside it. They follow the tools' arithmetic for
// ordinary data. Where a tool divides by zero or lets a NaN through, the rule keeps Octet's policy instead
// (scale_rule); where it caps a scale at the largest float, Octet caps at 2^126.
namespace recipes {

namespace detail {
OCTET_INLINE constexpr scale_rule rule(descale_form form, scaling how, float floor = 0) {
  scale_rule r(form, how);
  r.floor = floor;
  return r;
}
}  // namespace detail

// TransformerEngine current scaling: per_tensor; scale = FMAX / amax. Its delayed scaling takes amax from a history of
// steps.
OCTET_INLINE constexpr scale_rule transformer_engine() {
  return detail::rule(descale_form::float32, scaling::scale_first);
}
// TransformerEngine block scaling: per_block<1, 128> and per_block<128, 128>, scales rounded down to powers of two.
OCTET_INLINE constexpr scale_rule transformer_engine_block() {
  return detail::rule(descale_form::e8m0_up, scaling::scale_first);
}
// vLLM dynamic per tensor: the reciprocal is multiplied.
OCTET_INLINE constexpr scale_rule vllm_tensor() { return detail::rule(descale_form::float32, scaling::multiply); }
// vLLM and FBGEMM dynamic per_token: descale at least 1 / (448 * 512). FBGEMM's upper bound of amax is the member
// `cap`.
OCTET_INLINE constexpr scale_rule vllm_token() {
  return detail::rule(descale_form::float32, scaling::divide, 1.0f / 512);
}
// vLLM per-token groups: per_block<1, 128>, amax at least 1e-10.
OCTET_INLINE constexpr scale_rule vllm_group() { return detail::rule(descale_form::float32, scaling::divide, 1e-10f); }
// compressed-tensors (llm-compressor): per_channel weights, descales in bfloat16; a zero group gets the dtype's
// epsilon.
OCTET_INLINE constexpr scale_rule compressed_tensors() {
  scale_rule r = detail::rule(descale_form::bf16, scaling::divide);
  r.zero = 0x1p-7f;
  return r;
}
// DeepSeek-V3 activations: per_block<1, 128>, amax at least 1e-4 (which also holds for small groups that are not zero:
// an amax of 1e-6 then uses 4.48 of the 448). DeepGEMM: the same with power-of-two descales, and the reciprocal
// multiplied.
OCTET_INLINE constexpr scale_rule deepseek() { return detail::rule(descale_form::float32, scaling::divide, 1e-4f); }
OCTET_INLINE constexpr scale_rule deepgemm() { return detail::rule(descale_form::e8m0_up, scaling::multiply, 1e-4f); }
// torchao float8 training: per_tensor or per_token, amax at least 1e-12.
OCTET_INLINE constexpr scale_rule torchao_training() {
  return detail::rule(descale_form::float32, scaling::scale_first, 1e-12f);
}
// OCP MX 1.0: per_block<1, 32>, the exponent rounded down, so that an amax in the upper part of a binade clips (above
// 448 of 512 with E4M3); and the rule of NVIDIA's MXFP8, the exponent rounded up, which never clips.
OCTET_INLINE constexpr scale_rule mx() { return detail::rule(descale_form::e8m0_floor, scaling::divide); }
OCTET_INLINE constexpr scale_rule mx_rceil() { return detail::rule(descale_form::e8m0_up, scaling::divide); }

}  // namespace recipes
}  // namespace v0
}  // namespace octet
