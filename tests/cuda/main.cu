// The one main of the device tests; where there is no device it says how many tests that leaves unrun, and exits with 77.
// SPDX-License-Identifier: MIT
#define DOCTEST_CONFIG_IMPLEMENT
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <sstream>
#include <string>

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return doctest::Context(argc, argv).run();

  const char* const count[] = {argv[0], "--count"};
  doctest::Context context(2, count);
  std::ostringstream counted;  // "...: N" and a line end
  context.setCout(&counted);
  context.run();
  const std::string words = counted.str();
  std::printf("no CUDA device: %d tests built, 0 run\n", std::stoi(words.substr(words.rfind(':') + 1)));
  return 77;
}
