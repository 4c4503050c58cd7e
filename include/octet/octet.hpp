// Octet: 8-bit floating point for inference engines. The front door: what is here, and in which header.
// SPDX-License-Identifier: MIT
//
//   fp8.hpp           the byte: fp8<E, M, encoding, bias>; e4m3, e5m2 and eleven more; comparison, classification
//   limits.hpp        std::numeric_limits and std::hash
//   convert.hpp       one value: encode<e4m3>(x), decode(q), encode_stochastic; constant expressions, host and device
//   float_traits.hpp  16-bit floats: octet::float16, octet::bfloat16, the compiler's and yours
//   arithmetic.hpp    + - * / and a few functions of <cmath>, through float
//   text.hpp          to_string and operator<<
//   bulk.hpp          many values: encode, decode, amax over (pointer, count) or ranges; as_codes over a byte buffer
//   packing.hpp       FP6 and FP4 codes in fewer bytes
//   granularity.hpp   who shares a scale: per_tensor, per_channel, per_token, per_block<R, C>
//   scale.hpp         descale and scale, two types; scale_rule: how a descale follows from amax
//   recipes.hpp       the scale rules of TransformerEngine, vLLM, DeepSeek, MX and others, by name
//   matrix.hpp        matrix_view: a matrix in your memory
//   quantize.hpp      scaled values: quantize, quantize_into, dequantize_into, measure
//   gemv.hpp          products with weights that are decoded in registers: gemv, dot, axpy
//   statistics.hpp    what was lost: clipped, flushed, mean relative error, SNR
//   footprint.hpp     bytes of codes, descales and KV caches
//   random.hpp        Philox, the bits of stochastic rounding
//   errors.hpp        how a bad shape is reported; set_error_handler
//   simd/             the rows of kernels, one a machine, and the table that picks one at run time
//
// Promises
//   - E4M3 and E5M2 have the bytes of NVIDIA's cuda_fp8.h, for every source type and both overflow modes.
//   - No dependency beyond the standard library, no compiler flag, nothing at start-up, no allocation except in
//     quantize() (which returns its memory), no threads. Works with -fno-exceptions -fno-rtti, -ffast-math, any
//     rounding mode and flush-to-zero: the bytes are the same (arithmetic.hpp says where it is the exception).
//   - Translation units with different flags link: nothing one unit compiled is called from another.
//   - fp8.hpp, limits.hpp and convert.hpp include no heavy header; take them alone where compile time counts.
#pragma once

#include "arithmetic.hpp"
#include "bulk.hpp"
#include "convert.hpp"
#include "errors.hpp"
#include "footprint.hpp"
#include "fp8.hpp"
#include "gemv.hpp"
#include "granularity.hpp"
#include "limits.hpp"
#include "packing.hpp"
#include "quantize.hpp"
#include "recipes.hpp"
#include "scale.hpp"
#include "text.hpp"
