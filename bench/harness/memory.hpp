// Where the arrays lie: sizes for each level of the memory, and one region in huge pages that all benchmarks share.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "octet/simd/cache.hpp"

namespace harness {

// A place in the memory, by the bytes that a benchmark reads and writes there together.
struct level {
  const char* name;
  std::size_t bytes;
};

// Beyond the caches: three times the last level, at least 1 GiB and at most 3 GiB. (--mem_mib=N says otherwise.)
inline std::size_t& mem_bytes() {
  static std::size_t bytes = [] {
    const std::size_t wanted = 3 * octet::simd::largest_cache(), gib = std::size_t{1} << 30;
    return wanted < gib ? gib : wanted > 3 * gib ? 3 * gib : wanted;
  }();
  return bytes;
}

inline level l1() { return {"L1", std::size_t{16} << 10}; }
inline level l2() { return {"L2", std::size_t{1} << 20}; }
inline level mem() { return {"MEM", mem_bytes()}; }
inline bool is_mem(level where) { return where.name[0] == 'M'; }

// Bytes in huge pages (where the system has them), touched. Grows and is never given back before the program ends, so
// that a benchmark meets the pages that the one before it has warmed.
class region {
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  unsigned char* begin_ = nullptr;
  void* mapped_ = nullptr;
  std::size_t bytes_ = 0, mapped_bytes_ = 0;

 public:
  region() = default;
  region(const region&) = delete;
  region& operator=(const region&) = delete;
  ~region() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  }

  // At least so many bytes, from a huge page's beginning. What was there is lost where it had to grow.
  unsigned char* at_least(std::size_t bytes) {
    if (bytes <= bytes_) return begin_;
    if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
    bytes_ = (bytes + huge_page - 1) / huge_page * huge_page;
    mapped_bytes_ = bytes_ + huge_page;
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) {
      std::fprintf(stderr, "bench: there is no memory for %zu bytes\n", bytes_);
      std::exit(1);
    }
    const std::size_t past = reinterpret_cast<std::size_t>(mapped_) % huge_page;
    begin_ = static_cast<unsigned char*>(mapped_) + (past != 0 ? huge_page - past : 0);
#ifdef MADV_HUGEPAGE
    madvise(begin_, bytes_, MADV_HUGEPAGE);
#endif
    std::memset(begin_, 1, bytes_);
    return begin_;
  }
};

}  // namespace harness
