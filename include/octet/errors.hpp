// How a bad shape or size is reported: one function, and the caller's own handler.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <cstdlib>

#include "config.hpp"
#if OCTET_EXCEPTIONS
#include <stdexcept>
#endif

namespace octet {
inline namespace v0 {

// Called with one line of text before the error is reported in the usual way: std::invalid_argument with that text, or,
// compiled without exceptions, the text on standard error and std::abort. A handler may leave by an exception or
// longjmp of its own; if it returns, the usual way follows, since the call can't go on.
using error_handler = void (*)(const char* message);

namespace detail {
inline error_handler installed_error_handler = nullptr;
}

// Installs a handler for the whole program (nullptr: none) and returns the one before. Not synchronised: install it
// before the threads start.
OCTET_HOST_INLINE error_handler set_error_handler(error_handler handler) {
  const error_handler before = detail::installed_error_handler;
  detail::installed_error_handler = handler;
  return before;
}

namespace detail {

[[noreturn]] OCTET_COLD void fail(const char* message) {
  if (installed_error_handler != nullptr) installed_error_handler(message);
#if OCTET_EXCEPTIONS
  throw std::invalid_argument(message);
#else
  std::fprintf(stderr, "%s\n", message);
  std::abort();
#endif
}

// Reports "octet::<where>: <what> <got> <wrong> <limit>", such as
// "octet::quantize_into: input row_stride 3 is less than cols 4".
[[noreturn]] OCTET_COLD void fail(const char* where, const char* what, std::size_t got, const char* wrong,
                                  std::size_t limit) {
  char message[256];
  std::snprintf(message, sizeof message, "octet::%s: %s %zu %s %zu", where, what, got, wrong, limit);
  fail(message);
}

// Reports "octet::<where>: <what> is a null pointer for <n> <unit>".
[[noreturn]] OCTET_COLD void fail_null(const char* where, const char* what, std::size_t n, const char* unit) {
  char message[256];
  std::snprintf(message, sizeof message, "octet::%s: %s is a null pointer for %zu %s", where, what, n, unit);
  fail(message);
}

OCTET_HOST_INLINE void require(bool holds, const char* message) {
  if (!holds) fail(message);
}
OCTET_HOST_INLINE void require(bool holds, const char* where, const char* what, std::size_t got, const char* wrong,
                               std::size_t limit) {
  if (!holds) fail(where, what, got, wrong, limit);
}
OCTET_HOST_INLINE void require_pointer(const char* where, const char* what, const void* p, std::size_t n,
                                       const char* unit) {
  if (p == nullptr && n != 0) fail_null(where, what, n, unit);
}

// Two arrays of bytes may not share any.
OCTET_HOST_INLINE void require_apart(const char* where, const char* what, const void* in, std::size_t in_bytes,
                                     const void* out, std::size_t out_bytes) {
  const auto i = reinterpret_cast<std::uintptr_t>(in), o = reinterpret_cast<std::uintptr_t>(out);
  const bool apart = in_bytes == 0 || out_bytes == 0 || (o >= i ? o - i >= in_bytes : i - o >= out_bytes);
  require(apart, where, what, o >= i ? o - i : i - o, "bytes from its input overlaps it; the input's bytes:", in_bytes);
}

}  // namespace detail
}  // namespace v0
}  // namespace octet
