// All halves and bfloat16s and millions of doubles to E4M3 and E5M2, and floats to E8M0, against NVIDIA's bytes.
// SPDX-License-Identifier: MIT
#include "../formats.hpp"
#include "catch.hpp"
#include "digests.hpp"
#include "reference.hpp"

namespace {

constexpr std::size_t doubles = std::size_t{1} << 22;

// Input number i: of the 16-bit types every bit pattern; doubles of any exponent, doubles of the formats'
// exponents, and doubles at a tie or next to it, in turn.
template <class T>
T input(std::size_t i, oracle::random& random) {
  if constexpr (sizeof(T) == 2) {
    return T::from_bits(static_cast<std::uint16_t>(i));
  } else {
    const std::uint64_t any = random(), exponent = 1023 - 20 + random() % 40, sign = any & std::uint64_t{1} << 63;
    if (i % 3 == 0) return octet::bit_cast<double>(any);
    if (i % 3 == 1) return octet::bit_cast<double>(sign | exponent << 52 | any << 12 >> 12);
    const std::uint64_t tie = sign | exponent << 52 | (any >> (64 - 5)) << (52 - 5);
    return octet::bit_cast<double>(tie + random() % 3 - 1);
  }
}

// The digest of all codes; differences from the header's, where there is one, go to the tally.
template <class F, class T>
std::uint64_t run(octet::overflow o, bool by_reference, tally& t) {
  oracle::random random(17);
  reference::digest d;
  std::uint8_t codes[8];
  const std::size_t n = sizeof(T) == 2 ? 65536 : doubles;
  for (std::size_t i = 0; i < n; ++i) {
    const T x = input<T>(i, random);
    const std::uint8_t code = octet::encode<F>(x, o).bits();
    const std::uint8_t wanted = reference::has_header ? reference::encode<F>(x, o) : code;
    t.expect(code == wanted, [&] { return difference("input", i, code, wanted); });
    codes[i % 8] = by_reference ? wanted : code;
    if (i % 8 == 7) d.add(codes, 8);
  }
  return d.value();
}

template <class T>
void check(const char* name, const std::uint64_t (&recorded)[2][2]) {
  for (const octet::overflow o : overflows) {
    tally t;
    const int column = o == octet::overflow::nonfinite;
    const std::uint64_t e4m3 = run<octet::e4m3, T>(o, false, t), e5m2 = run<octet::e5m2, T>(o, false, t);
    std::printf("%s %s: %llu codes, %llu differences, %d of 2 digests wrong\n", name, column ? "nonfinite" : "saturate",
                static_cast<unsigned long long>(t.compared), static_cast<unsigned long long>(t.differences),
                (e4m3 != recorded[0][column]) + (e5m2 != recorded[1][column]));
    INFO(name << " " << t.first);
    CHECK(t.differences == 0);
    CHECK(e4m3 == recorded[0][column]);
    CHECK(e5m2 == recorded[1][column]);
  }
}

}  // namespace

TEST_CASE("every half and bfloat16 and every double of a large sample encodes to NVIDIA's byte") {
  std::printf("Reference: %s\n", reference::name);
  check<octet::float16>("half", digests::half);
  check<octet::bfloat16>("bfloat16", digests::bfloat16);
  check<double>("double", digests::doubles);
}

#if OCTET_TEST_CUDA_FP8

TEST_CASE("E8M0 agrees with NVIDIA's conversions in both of their modes") {
  tally t;
  const auto expect = [&t](auto x, std::uint64_t shown, auto convert) {
    for (const octet::overflow o : overflows) {
      for (const bool up : {false, true}) {
        const std::uint8_t wanted = convert(x, reference::saturation(o), up ? cudaRoundPosInf : cudaRoundZero);
        const std::uint8_t code =
            octet::encode<octet::e8m0>(x, o, up ? octet::rounding::upward : octet::rounding::toward_zero).bits();
        t.expect(code == wanted, [&] { return difference(up ? "up" : "down", shown, code, wanted); });
      }
    }
  };
  // Every 61st float, and the two either side of every multiple of 2^16: the powers of two and the subnormals among
  // them.
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; i += 61)
    expect(octet::bit_cast<float>(static_cast<std::uint32_t>(i)), i, &__nv_cvt_float_to_e8m0);
  for (std::uint64_t i = 0; i < 65536; ++i) {
    for (const std::uint32_t step : {0xFFFFFFFFu, 0u, 1u}) {
      const auto bits = static_cast<std::uint32_t>(i << 16) + step;
      expect(octet::bit_cast<float>(bits), bits, &__nv_cvt_float_to_e8m0);
    }
    expect(octet::bfloat16::from_bits(static_cast<std::uint16_t>(i)), i, [](octet::bfloat16 x, auto o, auto mode) {
      __nv_bfloat16_raw raw;
      raw.x = x.bits();
      return __nv_cvt_bfloat16raw_to_e8m0(raw, o, mode);
    });
  }
  oracle::random random(23);
  for (int i = 0; i < 1 << 20; ++i) {
    const std::uint64_t bits =
        i % 2 == 0 ? random() : (1023 - 130 + random() % 260) << 52 | (random() % 5 - 2) << 12 >> 12;
    expect(octet::bit_cast<double>(bits), bits, &__nv_cvt_double_to_e8m0);
  }
  std::printf("E8M0: %llu codes, %llu differences from cuda_fp8.h\n", static_cast<unsigned long long>(t.compared),
              static_cast<unsigned long long>(t.differences));
  INFO(t.first);
  CHECK(t.differences == 0);
}

TEST_CASE("every code decodes to NVIDIA's half") {
  for (unsigned code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    CHECK(octet::decode<octet::float16>(octet::e4m3::from_bits(byte)).bits() ==
          __nv_cvt_fp8_to_halfraw(byte, __NV_E4M3).x);
    CHECK(octet::decode<octet::float16>(octet::e5m2::from_bits(byte)).bits() ==
          __nv_cvt_fp8_to_halfraw(byte, __NV_E5M2).x);
    CHECK(octet::decode<octet::bfloat16>(octet::e8m0::from_bits(byte)).bits() == __nv_cvt_e8m0_to_bf16raw(byte).x);
  }
}

namespace {

template <class T>
void record(const char* name) {
  std::printf("inline constexpr std::uint64_t %s[2][2] = {\n", name);
  tally t;
  const auto row = [&](auto tag) {
    using F = typename decltype(tag)::type;
    std::printf("    {0x%016llX, 0x%016llX},\n",
                static_cast<unsigned long long>(run<F, T>(octet::overflow::saturate, true, t)),
                static_cast<unsigned long long>(run<F, T>(octet::overflow::nonfinite, true, t)));
  };
  row(format_tag<octet::e4m3>{});
  row(format_tag<octet::e5m2>{});
  std::printf("};\n");
}

}  // namespace

TEST_CASE("prints the digests of the other sources", "[.record]") {
  record<octet::float16>("half");
  record<octet::bfloat16>("bfloat16");
  record<double>("doubles");
}
#endif
