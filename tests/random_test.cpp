// Random bits: Philox4x32-10 against its published answers, and words that depend on seed and index alone.
// SPDX-License-Identifier: MIT
#include "octet/random.hpp"

#include <cstdlib>
#include <set>

#include "catch.hpp"

namespace {

// The definition, all six words of it, written from the paper: ten rounds of two multiplications, a swap, and a
// Weyl step.
struct philox_state {
  std::uint32_t counter[4], key[2];
};

philox_state ten_rounds(philox_state s) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ull * s.counter[0], b = 0xCD9E8D57ull * s.counter[2];
    const std::uint32_t next[4] = {
        static_cast<std::uint32_t>(b >> 32) ^ s.counter[1] ^ s.key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ s.counter[3] ^ s.key[1], static_cast<std::uint32_t>(a)};
    for (int i = 0; i < 4; ++i) s.counter[i] = next[i];
    s.key[0] += 0x9E3779B9;
    s.key[1] += 0xBB67AE85;
  }
  return s;
}

}  // namespace

static_assert(octet::philox_bits(0, 0) == 0x6627E8D5 && octet::philox_bits(0, 3) == 0x9B00DBD8);

TEST_CASE("block 0 of seed 0 is the published answer for a counter and key of zero") {
  const octet::philox_block block = octet::philox(0, 0);
  CHECK(block.words[0] == 0x6627E8D5);
  CHECK(block.words[1] == 0xE169C58D);
  CHECK(block.words[2] == 0xBC57AC4C);
  CHECK(block.words[3] == 0x9B00DBD8);
}

TEST_CASE("other seeds and blocks follow the definition, which gives the other published answers") {
  const philox_state ones = ten_rounds({{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}});
  CHECK(ones.counter[0] == 0x408F276D);
  CHECK(ones.counter[1] == 0x41C83B0E);
  CHECK(ones.counter[2] == 0xA20BC7C6);
  CHECK(ones.counter[3] == 0x6D5451FD);
  const philox_state pi = ten_rounds({{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}});
  CHECK(pi.counter[0] == 0xD16CFE09);
  CHECK(pi.counter[1] == 0x94FDCCEB);
  CHECK(pi.counter[2] == 0x5001E420);
  CHECK(pi.counter[3] == 0x24126EA1);
  int differences = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    for (std::uint64_t j = 0; j < 64; ++j) {
      const std::uint64_t seed = (std::uint64_t{1} << i) - 1, block = (std::uint64_t{1} << j) - 1;
      const philox_state s =
          ten_rounds({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}});
      for (unsigned w = 0; w < 4; ++w) differences += octet::philox(seed, block).words[w] != s.counter[w];
    }
  }
  CHECK(differences == 0);
}

TEST_CASE("word number i of a stream is word i mod 4 of block i / 4") {
  for (const std::uint64_t start : {std::uint64_t{0}, std::uint64_t{0x3FFFFFFF8}, ~std::uint64_t{0} - 20}) {
    for (std::uint64_t i = start; i < start + 20; ++i)
      CHECK(octet::philox_bits(77, i) == octet::philox(77, i / 4).words[i % 4]);
  }
}

TEST_CASE("streams and words differ, and their bits are balanced") {
  std::set<std::uint32_t> words;
  long long ones = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    for (std::uint64_t i = 0; i < 4096; ++i) {
      const std::uint32_t word = octet::philox_bits(seed, i);
      words.insert(word);
      for (int bit = 0; bit < 32; ++bit) ones += word >> bit & 1;
    }
  }
  CHECK(words.size() > 65500);  // 65536 draws of 2^32: half a collision is to be expected
  const long long bits = 65536 * 32;
  CHECK(std::llabs(2 * ones - bits) < 5 * 1449);  // five standard deviations of 2^21 tosses
}
