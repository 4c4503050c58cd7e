// Random bits for stochastic rounding: Philox, whose word `index` of stream `seed` depends on those two alone.
// SPDX-License-Identifier: MIT
#pragma once

#include "config.hpp"

namespace octet {
inline namespace v0 {

// The four words of one block. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011.
struct philox_block {
  std::uint32_t words[4];
};

// Block number `block` of the stream `seed`: uniform, the same on every machine, in any order, on any number of
// threads.
OCTET_INLINE constexpr philox_block philox(std::uint64_t seed, std::uint64_t block) {
  std::uint32_t c0 = static_cast<std::uint32_t>(block), c1 = static_cast<std::uint32_t>(block >> 32), c2 = 0, c3 = 0;
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Word number `index` of the stream `seed`: 32 uniform bits.
OCTET_INLINE constexpr std::uint32_t philox_bits(std::uint64_t seed, std::uint64_t index) {
  return philox(seed, index / 4).words[index % 4];
}

}  // namespace v0
}  // namespace octet
