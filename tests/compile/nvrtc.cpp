// Compiles a kernel that converts, as a program does while it runs, and looks for the instructions in what comes out.
// SPDX-License-Identifier: MIT
//   nvrtc ARCHITECTURE INSTRUCTIONS OPTIONS...    such as compute_90 2 -I...; how many conversions to codes there must be
#include <nvrtc.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

const char kernel[] = R"(
#include "octet/cuda/convert.cuh"
extern "C" __global__ void convert(const float* in, octet::e4m3* one, octet::cuda::pack<octet::e5m2, 2>* two, float* out) {
  static_assert(octet::encode<octet::e4m3>(1.0f).bits() == 0x38);
  const int i = threadIdx.x;
  one[i] = octet::e4m3(in[i]);
  two[i] = octet::cuda::encode<octet::e5m2>(octet::cuda::pack<float, 2>{in[i + 1], in[i + 2]});
  out[i] = octet::decode(one[i]) + octet::decode<float>(octet::e2m1(in[i])) + octet::decode<float>(octet::e8m0(in[i]));
})";

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::vector<const char*> options{"-std=c++17"};
  const std::string architecture = std::string("-arch=") + argv[1];
  options.push_back(architecture.c_str());
  options.insert(options.end(), argv + 3, argv + argc);

  nvrtcProgram program;
  if (nvrtcCreateProgram(&program, kernel, "convert.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS) return 1;
  const nvrtcResult compiled = nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  nvrtcGetProgramLog(program, log.data());
  std::printf("%s", log.c_str());
  if (compiled != NVRTC_SUCCESS) return 1;

  nvrtcGetPTXSize(program, &size);
  std::string ptx(size, '\0');
  nvrtcGetPTX(program, ptx.data());
  nvrtcDestroyProgram(&program);
  long found = 0;
  for (std::size_t at = ptx.find(".satfinite."); at != std::string::npos; at = ptx.find(".satfinite.", at + 1)) ++found;
  if (found != std::atol(argv[2])) {
    std::printf("%s: %ld conversion instructions, not %s\n", argv[1], found, argv[2]);
    return 1;
  }
}
