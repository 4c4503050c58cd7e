// NVIDIA's cuda_fp8.h on the host behind the C interface of octet.cpp: its conversions in the plainest loops.
// SPDX-License-Identifier: MIT
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstddef>

namespace {

inline __nv_fp8_storage_t encoded(float x, __nv_fp8_interpretation_t f) {
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, f);
}
inline __nv_fp8_storage_t encoded(__half_raw x, __nv_fp8_interpretation_t f) {
  return __nv_cvt_halfraw_to_fp8(x, __NV_SATFINITE, f);
}
inline __nv_fp8_storage_t encoded(__nv_bfloat16_raw x, __nv_fp8_interpretation_t f) {
  return __nv_cvt_bfloat16raw_to_fp8(x, __NV_SATFINITE, f);
}

inline void set(__half_raw& out, __half_raw x) { out = x; }
inline void set(float& out, __half_raw x) { out = __half2float(__half(x)); }
inline void set(__nv_bfloat16_raw& out, __half_raw x) {
  out = static_cast<__nv_bfloat16_raw>(__float2bfloat16(__half2float(__half(x))));
}

template <class T>
void encode(const T* in, __nv_fp8_storage_t* out, std::size_t n, __nv_fp8_interpretation_t f) {
  for (std::size_t i = 0; i < n; ++i) out[i] = encoded(in[i], f);
}
template <class T>
void decode(const __nv_fp8_storage_t* in, T* out, std::size_t n, __nv_fp8_interpretation_t f) {
  for (std::size_t i = 0; i < n; ++i) set(out[i], __nv_cvt_fp8_to_halfraw(in[i], f));
}

}  // namespace

#define BOTH(NAME, T, FORMAT, F)                                                                                \
  void encode_##NAME##_##FORMAT(const T* in, __nv_fp8_storage_t* out, std::size_t n) { encode(in, out, n, F); } \
  void decode_##FORMAT##_##NAME(const __nv_fp8_storage_t* in, T* out, std::size_t n) { decode(in, out, n, F); }

extern "C" {
BOTH(float, float, e4m3, __NV_E4M3)
BOTH(float, float, e5m2, __NV_E5M2)
BOTH(float16, __half_raw, e4m3, __NV_E4M3)
BOTH(float16, __half_raw, e5m2, __NV_E5M2)
BOTH(bfloat16, __nv_bfloat16_raw, e4m3, __NV_E4M3)
BOTH(bfloat16, __nv_bfloat16_raw, e5m2, __NV_E5M2)
}
