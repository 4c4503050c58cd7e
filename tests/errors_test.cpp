// The caller's own error handler.
// SPDX-License-Identifier: MIT
#include "octet/errors.hpp"

#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "octet/bulk.hpp"
#include "octet/quantize.hpp"

namespace {

std::string seen;
void remember(const char* message) { seen = message; }
struct other_error {};
void leave(const char*) { throw other_error{}; }

void fail_once() {
  octet::e4m3 code;
  octet::encode(static_cast<const float*>(nullptr), &code, 1);
}

}  // namespace

TEST_CASE("Without a handler an error is std::invalid_argument with one line of text") {
  CHECK_THROWS_WITH(fail_once(), "octet::encode: input is a null pointer for 1 values");
}

TEST_CASE("A handler sees the text first, and the call still does not go on") {
  CHECK(octet::set_error_handler(remember) == nullptr);
  CHECK_THROWS_AS(fail_once(), std::invalid_argument);
  CHECK(seen == "octet::encode: input is a null pointer for 1 values");
  CHECK(octet::set_error_handler(nullptr) == remember);
}

TEST_CASE("A handler may leave by an exception of its own") {
  octet::set_error_handler(leave);
  CHECK_THROWS_AS(fail_once(), other_error);
  octet::set_error_handler(nullptr);
}

TEST_CASE("A range of rows ends within the matrix") {
  float x[12] = {};
  const octet::matrix_view m(x, 3, 4);
  CHECK(m.row_range(1, 2).data == x + 4);
  CHECK(m.row_range(3, 0).rows == 0);
  CHECK_THROWS_WITH(m.row_range(4, 0), "octet::row_range: its first row 4 is beyond the rows 3");
  CHECK_THROWS_WITH(m.row_range(2, 2), "octet::row_range: its rows 2 are more than there are left: 1");
  CHECK_THROWS_WITH(m.row_range(1, static_cast<std::size_t>(-1)),
                    "octet::row_range: its rows 18446744073709551615 are more than there are left: 2");
  const auto q = octet::quantize<octet::e4m3>(m, octet::per_token{});
  CHECK_THROWS_WITH(q.view().row_range(2, 2), "octet::row_range: its rows 2 are more than there are left: 1");
}
