# The matrix: the headers' tests, but for the exhaustive ones, by other compilers and on other machines, a ctest test a leg.
# SPDX-License-Identifier: MIT

# octet_leg(NAME COMPILER OPTIONS...): skipped where the compiler is missing. The main build has tested the kernels for all
# formats; a leg takes one of each kind, unless OCTET_TEST_FULL_MATRIX says otherwise.
function(octet_leg name compiler)
  if(NOT OCTET_TEST_FULL_MATRIX)
    list(PREPEND ARGN -DOCTET_TEST_FEW_FORMATS=ON)
  endif()
  add_test(NAME matrix_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/leg ${PROJECT_BINARY_DIR}/matrix/${name} ${compiler} ${ARGN})
  set_tests_properties(
    matrix_${name} PROPERTIES LABELS matrix PROCESSORS ${processors} TIMEOUT 3600 SKIP_RETURN_CODE 77)
endfunction()

# The newest clang++ installed.
file(GLOB clangs /usr/bin/clang++-[0-9]*)
list(SORT clangs COMPARE NATURAL ORDER DESCENDING)
list(APPEND clangs clang++-newest)
list(GET clangs 0 newest_clang)
get_filename_component(newest_clang ${newest_clang} NAME)

# Optimisation levels and standards are spread over the legs, each where it compiles fastest: everything is always inlined,
# and g++ takes twice as long at -O0 as at -O1. The main build has this machine's compiler and C++17.
octet_leg(g++-11 g++-11 -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_CXX_STANDARD=20)
octet_leg(${newest_clang} ${newest_clang} -DCMAKE_CXX_FLAGS_RELEASE=-O2 -DCMAKE_CXX_STANDARD=23)

# The oldest clang++: all tests with the sanitizers (at -O1, since at -O0 they take 9 GB to compile a test), and without them
# what they leave out and the rows' own test.
octet_leg(sanitizers clang++-14 -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_CXX_STANDARD=17 -DOCTET_SANITIZE=ON)
octet_leg(clang++-14 clang++-14 -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_CXX_STANDARD=17 "-DOCTET_UNIT_TESTS=environment|simd")

# Other machines: aarch64 (16-bit floats of its own, and the NEON row, which no other build tests: all formats), riscv64
# (another NaN), s390x (big-endian).
set(formats_of_aarch64 -DOCTET_TEST_FEW_FORMATS=OFF)
set(linked_for_riscv64 -Wl,--no-relax) # shorter calls would be looked for in every program, longer than it takes to run
foreach(machine aarch64 riscv64 s390x)
  octet_leg(
    ${machine} ${machine}-linux-gnu-g++ ${formats_of_${machine}} -DCMAKE_CXX_FLAGS_RELEASE=-O1 "-DCMAKE_EXE_LINKER_FLAGS=-static ${linked_for_${machine}}"
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=${machine} -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-${machine})
endforeach()
