// Octet behind a C interface, for bench/peers to call from Python on the arrays that the others get.
// SPDX-License-Identifier: MIT
#include "octet/octet.hpp"

namespace {

using octet::bfloat16;
using octet::e4m3;
using octet::e5m2;
using octet::float16;

template <class T>
float largest_magnitude(const void* in, std::size_t n) {
  return octet::amax(static_cast<const T*>(in), n);
}

template <class T, class Granularity>
void quantize(const void* in, void* codes, float* descales, std::size_t rows, std::size_t cols, Granularity g) {
  octet::quantize_into(octet::matrix_view(static_cast<const T*>(in), rows, cols), g, octet::scale_rule(),
                       octet::matrix_view(octet::as_codes<e4m3>(codes), rows, cols), octet::as_descales(descales));
}

}  // namespace

#define ENCODE(T, F) \
  void encode_##T##_##F(const T* in, F* out, std::size_t n) { octet::encode(in, out, n); }
#define DECODE(F, T) \
  void decode_##F##_##T(const F* in, T* out, std::size_t n) { octet::decode(in, out, n); }
#define REDUCE(T) \
  float amax_##T(const void* in, std::size_t n) { return largest_magnitude<T>(in, n); }
#define QUANTIZE(T, GRANULARITY)                                                                    \
  void quantize_##T##_##GRANULARITY(const void* in, void* codes, float* descales, std::size_t rows, \
                                    std::size_t cols) {                                             \
    quantize<T>(in, codes, descales, rows, cols, octet::GRANULARITY{});                             \
  }

extern "C" {
void nothing(const void*, void*, std::size_t) {}
const char* row() { return octet::simd::row_name(octet::simd::row_in_use()); }
ENCODE(float, e4m3)
ENCODE(float, e5m2)
ENCODE(float16, e4m3)
ENCODE(float16, e5m2)
ENCODE(bfloat16, e4m3)
ENCODE(bfloat16, e5m2)
DECODE(e4m3, float)
DECODE(e4m3, float16)
DECODE(e4m3, bfloat16)
DECODE(e5m2, float)
DECODE(e5m2, float16)
DECODE(e5m2, bfloat16)
REDUCE(float)
REDUCE(bfloat16)
QUANTIZE(float, per_tensor)
QUANTIZE(float, per_token)
QUANTIZE(bfloat16, per_tensor)
QUANTIZE(bfloat16, per_token)
}
