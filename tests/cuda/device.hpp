// What the device tests share: memory of the device, and the same body run in a kernel and on the host.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace device {

// n values in the device's memory.
template <class T>
class buffer {
  T* data_ = nullptr;
  std::size_t n_;

 public:
  explicit buffer(std::size_t n) : n_(n) { REQUIRE(cudaMalloc(&data_, n * sizeof(T)) == cudaSuccess); }
  explicit buffer(const std::vector<T>& values) : buffer(values.size()) {
    REQUIRE(cudaMemcpy(data_, values.data(), n_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  ~buffer() { cudaFree(data_); }
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> copy(n_);
    REQUIRE(cudaMemcpy(copy.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return copy;
  }
};

template <class Body, class In, class Out>
__global__ void apply(Body body, const In* in, Out* out, std::size_t n) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) out[i] = body(in[i]);
}

// body(x) for every x, computed by a thread each.
template <class Out, class Body, class In>
std::vector<Out> map(Body body, const std::vector<In>& in) {
  buffer<In> from(in);
  buffer<Out> to(in.size());
  apply<<<static_cast<unsigned>((in.size() + 255) / 256), 256>>>(body, from.data(), to.data(), in.size());
  REQUIRE(cudaGetLastError() == cudaSuccess);
  return to.values();
}

}  // namespace device
