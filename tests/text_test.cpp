// Values as text, and back.
// SPDX-License-Identifier: MIT
#include "octet/text.hpp"

#include <cstdlib>
#include <iomanip>
#include <sstream>

#include "catch.hpp"
#include "formats.hpp"
#include "octet/convert.hpp"

TEST_CASE("to_string gives the exact decimal value") {
  CHECK(octet::to_string(octet::e4m3(448)) == "448");
  CHECK(octet::to_string(octet::e4m3::from_bits(0x01)) == "0.001953125");
  CHECK(octet::to_string(octet::e4m3::from_bits(0x80)) == "-0");
  CHECK(octet::to_string(octet::e4m3::from_bits(0xFF)) == "nan");
  CHECK(octet::to_string(octet::e5m2::from_bits(0xFC)) == "-inf");
  CHECK(octet::to_string(octet::e5m2::from_bits(0x01)) == "1.52587890625e-05");
  CHECK(octet::to_string(octet::e8m0::from_bits(0x7F)) == "1");
}

TEST_CASE("The text of every code of every format reads back as that code") {
  for_each_format([](auto tag, const oracle::table& format) {
    using F = typename decltype(tag)::type;
    for (unsigned code = 0; code < format.codes; ++code) {
      const F x = F::from_bits(static_cast<std::uint8_t>(code));
      if (isnan(x)) continue;
      const double back = std::strtod(octet::to_string(x).c_str(), nullptr);
      if (octet::encode<F>(back, octet::overflow::nonfinite).bits() != code) FAIL(octet::to_string(x));
    }
  });
}

TEST_CASE("Streams print the value with their own precision and width") {
  std::ostringstream stream;
  stream << octet::e4m3(1.5) << ' ' << std::setw(6) << octet::e5m2(-2) << ' ' << std::setprecision(3)
         << octet::e4m3::from_bits(0x01) << ' ' << octet::e4m3::from_bits(0x7F);
  CHECK(stream.str() == "1.5     -2 0.00195 nan");
}
