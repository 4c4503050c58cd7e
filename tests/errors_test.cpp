// The caller's own error handler.
// SPDX-License-Identifier: MIT
#include "octet/errors.hpp"

#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "octet/bulk.hpp"

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
