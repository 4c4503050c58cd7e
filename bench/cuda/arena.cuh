// The device's memory, taken once: arrays of which every turn has its own, filled with values drawn on the device.
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "octet/convert.hpp"
#include "octet/scale.hpp"

namespace cuda_bench {

inline void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// An array of every turn; they lie `step` elements apart.
template <class T>
struct turns {
  T* first;
  std::size_t step, count;
  T* operator[](std::size_t turn) const { return first + turn % count * step; }
};

namespace detail {

// Independent of what is measured: the bits of i, mixed (the finalizer of MurmurHash3).
__device__ __forceinline__ std::uint64_t mixed(std::uint64_t i) {
  i = (i ^ i >> 33) * 0xff51afd7ed558ccdu;
  i = (i ^ i >> 33) * 0xc4ceb9fe1a85ec53u;
  return i ^ i >> 33;
}
// Near to normal, with deviation 1: the sum of four numbers of 16 bits.
__device__ __forceinline__ float normal(std::uint64_t i) {
  const std::uint64_t bits = mixed(i + 1);
  float sum = 0;
  for (int part = 0; part < 4; ++part) sum += static_cast<float>(bits >> 16 * part & 0xFFFF);
  return (sum - 131070.0f) * (1.7320508f / 65535);
}
__device__ __forceinline__ void draw(std::uint64_t i, octet::descale& x) {
  x = octet::descale(0.01f * (1 + static_cast<float>(mixed(i) & 0xFF) / 256));
}
__device__ __forceinline__ void draw(std::uint64_t i, octet::e8m0& x) {
  x = octet::e8m0::from_bits(static_cast<std::uint8_t>(120 + (mixed(i) & 1)));
}
template <class T>
__device__ __forceinline__ void draw(std::uint64_t i, T& x) {
  if constexpr (octet::is_fp8_v<T>)
    x = octet::encode<T>(64 * normal(i));
  else
    x = T(normal(i));
}
template <class T>
static __global__ void fill(T* p, std::size_t n) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    draw(i, p[i]);
}

}  // namespace detail

class arena {
  std::byte* memory_ = nullptr;
  std::size_t size_, moved_, cache_, used_ = 0, turns_ = 2;
  cudaStream_t stream_;

 public:
  // moved: the bytes that a row should read and write in one turn. cache: those of the device's last-level cache.
  arena(std::size_t size, std::size_t moved, std::size_t cache, cudaStream_t stream)
      : size_(size), moved_(moved), cache_(cache), stream_(stream) {
    require(cudaMalloc(&memory_, size), "device memory");
  }
  ~arena() { cudaFree(memory_); }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  std::size_t moved() const { return moved_; }
  cudaStream_t stream() const { return stream_; }  // on which arrays are filled
  // Emulated: every row should take next to no time.
  bool is_tiny() const { return moved_ < (std::size_t{1} << 20); }

  // Frees everything for the next row, which touches so many bytes a turn: as many turns as the cache cannot hold.
  void begin(std::size_t bytes) {
    used_ = 0;
    turns_ = 2 * cache_ / bytes + 2;
  }
  // n elements for every turn, not written yet; for all turns the same ones.
  template <class T>
  turns<T> room(std::size_t n) {
    return take<T>(n, turns_);
  }
  template <class T>
  T* shared(std::size_t n) {
    return take<T>(n, 1).first;
  }
  // Fills an array of every turn: values are normal, codes those of such values times 64, descales near 0.01.
  template <class T>
  void draw(const turns<T>& all) {
    fill(all.first, all.step * all.count);
  }
  template <class T>
  turns<T> drawn(std::size_t n) {
    const turns<T> all = room<T>(n);
    draw(all);
    return all;
  }
  template <class T>
  T* shared_drawn(std::size_t n) {
    T* const p = shared<T>(n);
    fill(p, n);
    return p;
  }
  // The mark of kernels: a copy that reads and writes as many bytes together.
  auto copy_of(double bytes) {
    const auto half = static_cast<std::size_t>(bytes / 2);
    const turns<std::byte> from = room<std::byte>(half), to = room<std::byte>(half);
    require(cudaMemsetAsync(from.first, 0x5A, from.step * from.count, stream_), "cudaMemset");
    return [=](std::size_t turn, cudaStream_t stream) {
      return cudaMemcpyAsync(to[turn], from[turn], half, cudaMemcpyDeviceToDevice, stream);
    };
  }

 private:
  template <class T>
  turns<T> take(std::size_t n, std::size_t count) {
    constexpr std::size_t line = 256;
    const std::size_t step = (n * sizeof(T) + line - 1) / line * line;
    if (step > (size_ - used_) / count)
      throw std::runtime_error("needs more device memory than the " + std::to_string(size_ >> 20) + " MiB taken");
    const turns<T> all{reinterpret_cast<T*>(memory_ + used_), step / sizeof(T), count};
    used_ += step * count;
    return all;
  }
  template <class T>
  void fill(T* p, std::size_t n) {
    constexpr std::size_t threads = 256, most_blocks = 4096;
    const auto blocks = static_cast<unsigned>(std::min((n + threads - 1) / threads, most_blocks));
    detail::fill<<<blocks, threads, 0, stream_>>>(p, n);
    require(cudaGetLastError(), "filling the arrays");
  }
};

}  // namespace cuda_bench
