// CUDA's bfloat16 by a short name, and as one of the types that Octet reads.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_bf16.h>

#include "octet/float_traits.hpp"

template <>
struct octet::float_traits<__nv_bfloat16> : octet::ieee_layout<__nv_bfloat16, 8, 7> {};

namespace toy {

using bf16 = __nv_bfloat16;

}  // namespace toy
