// Which GPU this is, with what driver and toolkit, and how fast its clocks run while it works.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include "arena.cuh"
#include "cuda/toy/device.cuh"

namespace cuda_bench {

struct card {
  std::string name, driver, toolkit, runtime, clocks, date;
  std::size_t free_bytes = 0, cache_bytes = 0;
  bool emulated = false;
};

namespace detail {

// What a program prints, without the last line's end; empty where it cannot be run or fails.
inline std::string output_of(const std::string& command) {
  std::string out;
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  if (pclose(pipe) != 0) return "";
  return out.substr(0, out.find('\n'));
}

inline std::string version_of(int number) {  // 13020 is 13.2
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

inline std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16] = "";
  std::strftime(text, sizeof text, "%Y-%m-%d", std::localtime(&now));
  return text;
}

}  // namespace detail

// Of the current device.
inline card describe_card() {
  card found;
  int device = 0, number = 0;
  cudaDeviceProp properties{};
  std::size_t all_bytes = 0;
  require(cudaGetDevice(&device), "the device");
  require(cudaGetDeviceProperties(&properties, device), "the device");
  require(cudaMemGetInfo(&found.free_bytes, &all_bytes), "the device's memory");
  found.name = properties.name;
  found.emulated = toy::is_emulated(properties);
  found.cache_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  if (cudaDriverGetVersion(&number) == cudaSuccess) found.driver = "for CUDA " + detail::version_of(number);
  if (cudaRuntimeGetVersion(&number) == cudaSuccess) found.runtime = detail::version_of(number);
  found.toolkit = std::to_string(__CUDACC_VER_MAJOR__) + "." + std::to_string(__CUDACC_VER_MINOR__) + "." +
                  std::to_string(__CUDACC_VER_BUILD__);
  found.date = detail::today();
  return found;
}

// Asks nvidia-smi, where there is one, for the driver and the clocks; the device should be at work meanwhile.
inline void ask_for_clocks(card& found) {
  int device = 0;
  char bus[32] = "";
  require(cudaGetDevice(&device), "the device");
  require(cudaDeviceGetPCIBusId(bus, sizeof bus, device), "the device's bus");
  const std::string query =
      "nvidia-smi --query-gpu=driver_version,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,power.draw"
      " --format=csv,noheader,nounits";
  std::string line = detail::output_of(query + " -i " + bus + " 2>/dev/null");
  if (line.empty()) line = detail::output_of(query + " 2>/dev/null");
  std::vector<std::string> words;
  std::istringstream cells(line);
  for (std::string cell; std::getline(cells >> std::ws, cell, ',');) words.push_back(cell);
  if (words.size() != 6) return;
  found.driver = words[0];
  found.clocks = "SM " + words[1] + " MHz of " + words[2] + ", memory " + words[3] + " of " + words[4] + ", " +
                 words[5] + " W while copying";
}

}  // namespace cuda_bench
