// What the program owns on a GPU: memory, a stream, graphs and their times; and one line for whatever fails.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lab/failure.hpp"
#include "lab/text.hpp"

namespace toy {

// `what` names what was tried.
inline void check(cudaError_t error, const std::string& what) {
  if (error != cudaSuccess) throw lab::failure(what + ": " + cudaGetErrorString(error));
}

// An emulator says so in the device's name.
inline bool is_emulated(const cudaDeviceProp& device) {
  return std::string(device.name).find("emulated") != std::string::npos;
}

// n values in the GPU's memory.
template <class T>
class memory {
  T* data_ = nullptr;
  std::size_t size_ = 0;

 public:
  memory() = default;
  memory(std::size_t n, const std::string& what) : size_(n) {
    if (n == 0) return;
    check(cudaMalloc(&data_, n * sizeof(T)),
          lab::text("%s: %zu bytes of the GPU's memory", what.c_str(), n * sizeof(T)));
  }
  ~memory() { cudaFree(data_); }
  memory(memory&& other) noexcept { *this = std::move(other); }
  memory& operator=(memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
};

class stream {
  cudaStream_t stream_ = nullptr;

 public:
  stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  ~stream() { cudaStreamDestroy(stream_); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  operator cudaStream_t() const { return stream_; }

  void wait() const { check(cudaStreamSynchronize(stream_), "the work on the GPU"); }

  template <class T>
  memory<T> upload(const std::vector<T>& values, const std::string& what) const {
    memory<T> there(values.size(), what);
    check(cudaMemcpyAsync(there.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream_),
          what);
    wait();
    return there;
  }
  // Rows of `cols` values, `row_stride` apart, side by side.
  template <class T>
  std::vector<T> download(const T* from, std::size_t rows, std::size_t cols, std::size_t row_stride) const {
    std::vector<T> here(rows * cols);
    check(cudaMemcpy2DAsync(here.data(), cols * sizeof(T), from, row_stride * sizeof(T), cols * sizeof(T), rows,
                            cudaMemcpyDeviceToHost, stream_),
          "a copy to the host");
    wait();
    return here;
  }
  template <class T>
  std::vector<T> download(const memory<T>& from) const {
    return download(from.data(), 1, from.size(), from.size());
  }
};

// Work that was recorded once and is started as a whole: no launch waits for the host.
class graph {
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;

 public:
  template <class Work>
  graph(const stream& on, Work work) {
    check(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "recording a graph");
    work();
    check(cudaStreamEndCapture(on, &graph_), "recording a graph");
    check(cudaGraphInstantiate(&ready_, graph_, 0), "preparing a graph");
  }
  ~graph() {
    if (ready_ != nullptr) cudaGraphExecDestroy(ready_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;

  void start(const stream& on) const { check(cudaGraphLaunch(ready_, on), "starting a graph"); }
};

class event {
  cudaEvent_t event_ = nullptr;

 public:
  event() { check(cudaEventCreate(&event_), "an event"); }
  ~event() { cudaEventDestroy(event_); }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  operator cudaEvent_t() const { return event_; }
};

// The median of many replays, in milliseconds, after a few that warm up.
inline double median_time(const graph& work, const stream& on, int replays) {
  const event before, after;
  std::vector<float> times;
  for (int i = -5; i < replays; ++i) {
    check(cudaEventRecord(before, on), "an event");
    work.start(on);
    check(cudaEventRecord(after, on), "an event");
    check(cudaEventSynchronize(after), "the work on the GPU");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, before, after), "the time between two events");
    if (i >= 0) times.push_back(milliseconds);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace toy
