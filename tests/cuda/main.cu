// The one main of the device tests; where no device runs them it says how many tests that leaves unrun, and exits with 77.
// SPDX-License-Identifier: MIT
#define DOCTEST_CONFIG_IMPLEMENT
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "octet/cuda/convert.cuh"

// A device that cannot load a conversion cannot run the tests.
__global__ void probe(const float* x, octet::e2m1* code) { *code = octet::e2m1(*x); }

// Why no device runs the tests; null where one does.
const char* missing() {
#if defined(OCTET_TEST_FAMILY)
  const char *const device = "no emulator of a CUDA device, and no GPU takes this code", *const code = device;
#else
  const char *const device = "no CUDA device", *const code = "no CUDA device that the tests are compiled for";
#endif
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return device;
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, probe) == cudaSuccess ? nullptr : code;
}

int main(int argc, char** argv) {
  const char* const reason = missing();
  if (reason == nullptr) return doctest::Context(argc, argv).run();

  const char* const count[] = {argv[0], "--count"};
  doctest::Context context(2, count);
  std::ostringstream counted;  // "...: N" and a line end
  context.setCout(&counted);
  context.run();
  const std::string words = counted.str();
  std::printf("%s: %d tests built, 0 run\n", reason, std::stoi(words.substr(words.rfind(':') + 1)));
  return 77;
}
