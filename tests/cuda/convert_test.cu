// The conversions in device code against those on the host, whose bytes the other tests compare with cuda_fp8.h.
// SPDX-License-Identifier: MIT
#include <cstring>

#include "device.hpp"
#include "octet/cuda/convert.cuh"

namespace {

using octet::overflow;
using octet::rounding;

template <class F, class T>
struct encoder {
  overflow o = overflow::saturate;
  rounding r = F::default_rounding;
  OCTET_HOST_DEVICE F operator()(T x) const { return octet::encode<F>(x, o, r); }
};
template <class F, class T>
struct decoder {
  OCTET_HOST_DEVICE T operator()(F q) const { return octet::decode<T>(q); }
};
template <class F, class T, int N>
struct pack_encoder {
  using codes = octet::cuda::pack<F, N>;
  OCTET_HOST_DEVICE codes operator()(const octet::cuda::pack<T, N>& x) const { return octet::cuda::encode<F>(x); }
};
template <class F, class T, int N>
struct pack_decoder {
  using values = octet::cuda::pack<T, N>;
  OCTET_HOST_DEVICE values operator()(const octet::cuda::pack<F, N>& q) const { return octet::cuda::decode<T>(q); }
};

// Bits differ where a float comparison would not see it, and NaN equals NaN.
template <class T>
std::size_t differences(const std::vector<T>& a, const std::vector<T>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) n += std::memcmp(&a[i], &b[i], sizeof(T)) != 0 ? 1 : 0;
  return n;
}
template <class Out, class Body, class In>
std::size_t differences(Body body, const std::vector<In>& in) {
  std::vector<Out> host;
  host.reserve(in.size());
  for (const In& x : in) host.push_back(body(x));
  return differences(device::map<Out>(body, in), host);
}

// All values of a 16-bit type.
template <class T>
std::vector<T> all() {
  std::vector<T> values;
  for (unsigned bits = 0; bits < 1u << 16; ++bits) values.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  return values;
}
// Floats whose lower halves are where roundings turn, and one at random, under every upper half.
template <>
std::vector<float> all<float>() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 1u << 16; ++upper)
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu, (upper * 40503u) & 0xFFFFu})
      values.push_back(octet::bit_cast<float>(upper << 16 | lower));
  return values;
}
template <>
std::vector<double> all<double>() {
  std::vector<double> values;
  for (const float x : all<float>())
    for (const double nearby : {1.0, 1 + 0x1p-52, 1 - 0x1p-53}) values.push_back(static_cast<double>(x) * nearby);
  return values;
}
template <class F>
std::vector<F> all_codes() {
  std::vector<F> codes;
  for (int code = 0; code < 256; ++code) codes.push_back(F::from_bits(static_cast<std::uint8_t>(code)));
  return codes;
}

template <class To, class From>
std::vector<To> packed(const std::vector<From>& values) {
  std::vector<To> packs(values.size() * sizeof(From) / sizeof(To));
  std::memcpy(static_cast<void*>(packs.data()), values.data(), packs.size() * sizeof(To));
  return packs;
}

template <class F, class T, int N>
std::size_t pack_differences() {
  using codes = octet::cuda::pack<F, N>;
  using values = octet::cuda::pack<T, N>;
  const std::vector<T> x = all<T>();
  std::vector<F> one_by_one;
  for (const T value : x) one_by_one.push_back(octet::encode<F>(value));
  std::size_t n =
      differences(device::map<codes>(pack_encoder<F, T, N>{}, packed<values>(x)), packed<codes>(one_by_one));
  const std::vector<F> q = all_codes<F>();
  std::vector<T> decoded;
  for (const F code : q) decoded.push_back(octet::decode<T>(code));
  n += differences(device::map<values>(pack_decoder<F, T, N>{}, packed<codes>(q)), packed<values>(decoded));
  return n;
}
template <class F, class T>
std::size_t pack_differences() {
  return pack_differences<F, T, 1>() + pack_differences<F, T, 2>() + pack_differences<F, T, 4>() +
         pack_differences<F, T, 8>() + pack_differences<F, T, 16>();
}

}  // namespace

#if defined(OCTET_TEST_FAMILY)
// Compiled once more, for the formats that only code for a family of GPUs converts by instructions.
#if defined(__CUDA_ARCH__)
static_assert(octet::detail::has_instructions<octet::e2m1>, "compiled for a family");
#endif
#define OCTET_TEST_FORMATS octet::e4m3, octet::e5m2, octet::e8m0, octet::e2m3, octet::e3m2, octet::e2m1
#else
#define OCTET_TEST_FORMATS                                                                                       \
  octet::e4m3, octet::e5m2, octet::e4m3_ieee, octet::e4m3fnuz, octet::e5m2fnuz, octet::e4m3b11fnuz, octet::e3m4, \
      octet::p3109_p3, octet::p3109_p4, octet::e8m0, octet::e2m3, octet::e3m2, octet::e2m1
#endif

TEST_CASE_TEMPLATE("A value has the same code on the device as on the host", F, OCTET_TEST_FORMATS) {
  for (const overflow o : {overflow::saturate, overflow::nonfinite}) {
    CHECK(differences<F>(encoder<F, float>{o}, all<float>()) == 0);
    CHECK(differences<F>(encoder<F, octet::float16>{o}, all<octet::float16>()) == 0);
    CHECK(differences<F>(encoder<F, octet::bfloat16>{o}, all<octet::bfloat16>()) == 0);
    CHECK(differences<F>(encoder<F, double>{o}, all<double>()) == 0);
  }
}

TEST_CASE_TEMPLATE("Every rounding is the same on the device", F, octet::e4m3, octet::e5m2, octet::e8m0, octet::e2m1) {
  for (const rounding r :
       {rounding::nearest_even, rounding::nearest_away, rounding::toward_zero, rounding::upward, rounding::downward}) {
    CHECK(differences<F>(encoder<F, float>{overflow::saturate, r}, all<float>()) == 0);
    CHECK(differences<F>(encoder<F, octet::bfloat16>{overflow::saturate, r}, all<octet::bfloat16>()) == 0);
  }
}

TEST_CASE_TEMPLATE("A code has the same value on the device as on the host", F, OCTET_TEST_FORMATS) {
  CHECK(differences<float>(decoder<F, float>{}, all_codes<F>()) == 0);
  CHECK(differences<double>(decoder<F, double>{}, all_codes<F>()) == 0);
  CHECK(differences<octet::float16>(decoder<F, octet::float16>{}, all_codes<F>()) == 0);
  CHECK(differences<octet::bfloat16>(decoder<F, octet::bfloat16>{}, all_codes<F>()) == 0);
  CHECK(differences<int>(decoder<F, int>{}, all_codes<F>()) == 0);
}

TEST_CASE_TEMPLATE("A pack is its values one by one", F, octet::e4m3, octet::e5m2, octet::e4m3fnuz, octet::e8m0,
                   octet::e2m3, octet::e3m2, octet::e2m1) {
  CHECK(pack_differences<F, float>() == 0);
  CHECK(pack_differences<F, octet::float16>() == 0);
  CHECK(pack_differences<F, octet::bfloat16>() == 0);
  CHECK(pack_differences<F, double>() == 0);
}
