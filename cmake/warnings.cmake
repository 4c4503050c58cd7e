# How our own programs are compiled, octet_strict: every warning is an error. Those who include Octet never see this.
# SPDX-License-Identifier: MIT
add_library(octet_strict INTERFACE)
target_link_libraries(octet_strict INTERFACE octet::octet)

if(MSVC)
  target_compile_options(octet_strict INTERFACE /W4 /WX /permissive- /Zc:__cplusplus)
else()
  target_compile_options(octet_strict INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # At -O0 g++ passes vectors to functions without the right target wrongly, and this warning is all it says.
    target_compile_options(octet_strict INTERFACE -Werror=psabi)
  endif()
endif()

if(OCTET_SANITIZE)
  set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # A call for each access: instructions for it, amid everything that is inlined, take three times as long to compile.
  list(APPEND sanitizers $<$<CXX_COMPILER_ID:Clang>:-fsanitize-address-outline-instrumentation>)
  target_compile_options(octet_strict INTERFACE ${sanitizers})
  target_link_options(octet_strict INTERFACE ${sanitizers})
endif()
