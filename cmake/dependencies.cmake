# The libraries of the tests and examples: the installed one, else a pinned tag from the internet. The headers need none.
# SPDX-License-Identifier: MIT
include(FetchContent)

# octet_dependency(NAME TARGET REPOSITORY TAG): TARGET exists afterwards.
macro(octet_dependency name target repository tag)
  if(NOT TARGET ${target})
    find_package(${name} QUIET)
  endif()
  if(NOT TARGET ${target})
    message(STATUS "${name} is not installed: fetching ${tag} from ${repository}")
    FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON)
    FetchContent_MakeAvailable(${name})
  endif()
endmacro()

# octet_system_library(TARGET HEADER LIBRARY): TARGET exists afterwards if the machine has the library; what needs it is
# left out elsewhere.
function(octet_system_library target header library)
  find_path(${library}_INCLUDE ${header})
  find_library(${library}_LIBRARY ${library})
  if(${library}_INCLUDE AND ${library}_LIBRARY AND NOT TARGET ${target})
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(
      ${target} PROPERTIES IMPORTED_LOCATION ${${library}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${${library}_INCLUDE})
  endif()
endfunction()

if(OCTET_EXAMPLES OR OCTET_BENCH OR benchmark_FOUND)
  octet_dependency(CLI11 CLI11::CLI11 https://github.com/CLIUtils/CLI11 v2.4.2)
  octet_dependency(nlohmann_json nlohmann_json::nlohmann_json https://github.com/nlohmann/json v3.11.3)
endif()
if(OCTET_EXAMPLES)
  octet_system_library(PCRE2::8BIT pcre2.h pcre2-8)
  octet_system_library(utf8proc::utf8proc utf8proc.h utf8proc)
  find_package(Eigen3 QUIET NO_MODULE)
  find_package(TBB QUIET)
endif()
if(OCTET_TESTS)
  octet_dependency(Catch2 Catch2::Catch2 https://github.com/catchorg/Catch2 v3.7.1)
endif()
if(OCTET_BENCH)
  set(BENCHMARK_ENABLE_TESTING OFF)
  set(BENCHMARK_ENABLE_WERROR OFF)
  octet_dependency(benchmark benchmark::benchmark https://github.com/google/benchmark v1.9.1)
endif()
