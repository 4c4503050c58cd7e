// Packed FP6 and FP4: the order of the bits, every length, and nothing read or written beyond.
// SPDX-License-Identifier: MIT
#include "octet/packing.hpp"

#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "oracle.hpp"

namespace {

// Code i of a stream of bits, read one bit at a time.
unsigned bits_at(const std::vector<unsigned char>& stream, std::size_t first, int width) {
  unsigned code = 0;
  for (int b = 0; b < width; ++b) {
    const std::size_t at = first + static_cast<std::size_t>(b);
    code |= static_cast<unsigned>(stream[at / 8] >> (at % 8) & 1) << b;
  }
  return code;
}

template <class F>
void check_lengths() {
  oracle::random random(1);
  for (std::size_t n = 0; n <= 300; ++n) {
    std::vector<F> codes(n);
    for (F& q : codes) q = F::from_bits(static_cast<std::uint8_t>(random()));
    std::vector<unsigned char> stream(octet::packed_size<F>(n) + 1, 0xA5);
    octet::pack(codes.data(), stream.data(), n);
    REQUIRE(octet::packed_size<F>(n) == (n * static_cast<std::size_t>(F::width) + 7) / 8);
    REQUIRE(stream.back() == 0xA5);
    std::vector<F> back(n + 1, F::from_bits(1));
    octet::unpack(stream.data(), back.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(bits_at(stream, i * static_cast<std::size_t>(F::width), F::width) == codes[i].bits());
      REQUIRE(back[i].bits() == codes[i].bits());
    }
    REQUIRE(back[n].bits() == 1);
  }
}

}  // namespace

TEST_CASE("Packed codes are a stream of bits, for every length") {
  check_lengths<octet::e2m1>();
  check_lengths<octet::e2m3>();
  check_lengths<octet::e3m2>();
  check_lengths<octet::e4m3>();
}

TEST_CASE("Two FP4 codes share a byte, the first in its low half; four FP6 codes share three bytes") {
  const octet::e2m1 four[] = {octet::e2m1::from_bits(0x1), octet::e2m1::from_bits(0xE), octet::e2m1::from_bits(0x7)};
  unsigned char bytes[3] = {};
  octet::pack(four, bytes, 3);
  CHECK(bytes[0] == 0xE1);
  CHECK(bytes[1] == 0x07);
  const octet::e3m2 six[] = {octet::e3m2::from_bits(0x3F), octet::e3m2::from_bits(0), octet::e3m2::from_bits(0x21),
                             octet::e3m2::from_bits(0x15)};
  octet::pack(six, bytes, 4);
  CHECK(bytes[0] == 0x3F);
  CHECK(bytes[1] == 0x10);
  CHECK(bytes[2] == 0x56);
}

TEST_CASE("Null pointers and overlapping arrays are errors") {
  octet::e2m1 codes[4] = {};
  unsigned char bytes[2];
  CHECK_THROWS_WITH(octet::pack(codes, nullptr, 4), "octet::pack: output is a null pointer for 4 codes");
  CHECK_THROWS_AS(octet::unpack(nullptr, codes, 4), std::invalid_argument);
  CHECK_THROWS_AS(octet::pack(codes, reinterpret_cast<unsigned char*>(codes) + 3, 4), std::invalid_argument);
  octet::pack<octet::e2m1>(nullptr, bytes, 0);
}
