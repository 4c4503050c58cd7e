// Sizes of codes, descales and KV caches, by hand-counted numbers and at the edge of 64 bits.
// SPDX-License-Identifier: MIT
#include "octet/footprint.hpp"

#include "catch.hpp"

using namespace octet;

static_assert(octet::packed_bytes(7, std::uint64_t{1} << 62) == octet::too_many_bytes,
              "a product that does not fit saturates");

TEST_CASE("Counts saturate instead of wrapping round") {
  constexpr std::uint64_t half = std::uint64_t{1} << 32;
  STATIC_REQUIRE(count_product(half, half) == too_many_bytes);
  STATIC_REQUIRE(count_product(half, half - 1) == half * (half - 1));
  STATIC_REQUIRE(count_product(too_many_bytes, 1) == too_many_bytes);
  STATIC_REQUIRE(count_product(too_many_bytes, 2) == too_many_bytes);
  STATIC_REQUIRE(count_product(too_many_bytes, 0) == 0);
  STATIC_REQUIRE(count_product(0, too_many_bytes) == 0);
  STATIC_REQUIRE(count_sum(too_many_bytes - 1, 1) == too_many_bytes);
  STATIC_REQUIRE(count_sum(too_many_bytes, 1) == too_many_bytes);
  STATIC_REQUIRE(count_sum(1, too_many_bytes) == too_many_bytes);
  STATIC_REQUIRE(count_sum(2, 3) == 5);
}

TEST_CASE("Packed values are rounded up to whole bytes") {
  STATIC_REQUIRE(packed_bytes(0, 4) == 0);
  STATIC_REQUIRE(packed_bytes(1, 4) == 1);
  STATIC_REQUIRE(packed_bytes(2, 4) == 1);
  STATIC_REQUIRE(packed_bytes(3, 4) == 2);
  STATIC_REQUIRE(packed_bytes(1, 6) == 1);
  STATIC_REQUIRE(packed_bytes(3, 6) == 3);
  STATIC_REQUIRE(packed_bytes(4, 6) == 3);
  STATIC_REQUIRE(packed_bytes(5, 6) == 4);
  STATIC_REQUIRE(packed_bytes(7, 16) == 14);
  STATIC_REQUIRE(packed_bytes(7, 0) == 0);
  for (std::uint64_t count = 0; count < 100; ++count)
    for (std::uint64_t bits = 0; bits <= 64; ++bits) CHECK(packed_bytes(count, bits) == (count * bits + 7) / 8);
}

TEST_CASE("A packed count saturates only when its bytes do, though its bits would before") {
  constexpr std::uint64_t most = too_many_bytes;
  STATIC_REQUIRE(packed_bytes(most - 1, 8) == most - 1);
  STATIC_REQUIRE(packed_bytes(most - 1, 4) == most / 2);
  STATIC_REQUIRE(packed_bytes(most - 1, 16) == most);
  STATIC_REQUIRE(packed_bytes(most, 4) == most);
  STATIC_REQUIRE(packed_bytes(most, 0) == 0);
}

TEST_CASE("Codes take the width of their format") {
  STATIC_REQUIRE(code_bytes<e4m3>(3, 5) == 15);
  STATIC_REQUIRE(code_bytes<e5m2>(4096, 14336) == 58720256);
  STATIC_REQUIRE(code_bytes<e8m0>(3, 5) == 15);
  STATIC_REQUIRE(code_bytes<e2m3>(3, 5) == 12);  // 90 bits
  STATIC_REQUIRE(code_bytes<e3m2>(4, 4) == 12);
  STATIC_REQUIRE(code_bytes<e2m1>(3, 5) == 8);  // 60 bits
  STATIC_REQUIRE(code_bytes<e4m3>(0, 5) == 0);
  STATIC_REQUIRE(code_bytes<e4m3>(5, 0) == 0);
  STATIC_REQUIRE(code_bytes<e4m3>(std::uint64_t{1} << 40, std::uint64_t{1} << 40) == too_many_bytes);
}

TEST_CASE("Descales are counted by tiles, short ones included") {
  STATIC_REQUIRE(descale_bytes(per_tensor{}, 4096, 4096) == 4);
  STATIC_REQUIRE(descale_bytes(per_channel{0}, 1000, 512) == 4000);
  STATIC_REQUIRE(descale_bytes(per_channel{1}, 1000, 512) == 2048);
  STATIC_REQUIRE(descale_bytes(per_token{}, 1000, 512) == 4000);
  STATIC_REQUIRE(descale_bytes(per_block<128, 128>{}, 1000, 512) == 8 * 4 * 4);
  STATIC_REQUIRE(descale_bytes(per_block<128, 128>{}, 1000, 512, 2) == 8 * 4 * 2);
  STATIC_REQUIRE(descale_bytes(per_block<1, 32>{}, 10, 100, 1) == 40);
  STATIC_REQUIRE(descale_bytes(per_block<1, 128>{}, 3, 129) == 3 * 2 * 4);
  STATIC_REQUIRE(descale_bytes(per_block<128, 128>{64, 0}, 128, 128, 1) == 2);  // a shard that begins inside a block
  STATIC_REQUIRE(descale_bytes(per_block<128, 128>{64, 127}, 64, 2, 1) == 2);
}

TEST_CASE("An empty matrix has no descales") {
  STATIC_REQUIRE(descale_bytes(per_tensor{}, 0, 0, 1) == 0);
  STATIC_REQUIRE(descale_bytes(per_tensor{}, 0, 8, 1) == 0);
  STATIC_REQUIRE(descale_bytes(per_channel{0}, 8, 0, 1) == 0);
  STATIC_REQUIRE(descale_bytes(per_block<128, 128>{5, 5}, 0, 8, 1) == 0);
}

TEST_CASE("Descales of matrices that no address space holds saturate") {
  constexpr std::size_t most = ~std::size_t{0};
  STATIC_REQUIRE(descale_bytes(per_tensor{}, most, most, 1) == 1);
  STATIC_REQUIRE(descale_bytes(per_block<1, 2>{0, 1}, 1, most, 1) == too_many_bytes);
  STATIC_REQUIRE(descale_bytes(per_block<2, 1>{1, 0}, most, 1, 1) == too_many_bytes);
  STATIC_REQUIRE(descale_bytes(per_block<1, 1>{}, most, most, 1) == count_product(most, most));
  STATIC_REQUIRE(descale_bytes(per_channel{0}, most, 1, too_many_bytes) == too_many_bytes);
}

TEST_CASE("The KV cache of Llama-3-8B at 8192 tokens and batch 32 is 34.4 GB in bf16 and 17.2 GB in FP8") {
  constexpr kv_shape s{32, 8, 128, 8192, 32};
  STATIC_REQUIRE(kv_count(s) == 17179869184u);
  STATIC_REQUIRE(kv_code_bytes(s, 16) == 34359738368u);
  STATIC_REQUIRE(kv_code_bytes(s) == 17179869184u);
  STATIC_REQUIRE(kv_code_bytes(s, 4) == 8589934592u);
  STATIC_REQUIRE(kv_descale_bytes(s, kv_layout::per_tensor) == 256);
  STATIC_REQUIRE(kv_descale_bytes(s, kv_layout::per_head) == 2048);
  STATIC_REQUIRE(kv_descale_bytes(s, kv_layout::per_channel) == 262144);
  STATIC_REQUIRE(kv_descale_bytes(s, kv_layout::per_token_head) == 536870912);
  STATIC_REQUIRE(kv_descale_bytes(s, kv_layout::per_token_head, 2) == 268435456);
  // A float beside every 128 codes is 3.125 %.
  STATIC_REQUIRE(kv_descale_bytes(s, kv_layout::per_token_head) * 32 == kv_code_bytes(s));
}

TEST_CASE("KV sizes are zero for an empty cache and saturate for an impossible one") {
  STATIC_REQUIRE(kv_code_bytes(kv_shape{}) == 0);
  STATIC_REQUIRE(kv_descale_bytes(kv_shape{}, kv_layout::per_head) == 0);
  STATIC_REQUIRE(kv_code_bytes({32, 8, 128, 0, 32}) == 0);
  constexpr std::uint64_t large = std::uint64_t{1} << 31;
  STATIC_REQUIRE(kv_code_bytes({large, large, large, large, large}) == too_many_bytes);
  STATIC_REQUIRE(kv_code_bytes({large, large, large, large, 0}) == 0);
  STATIC_REQUIRE(kv_descale_bytes({large, large, 1, large, large}, kv_layout::per_token_head) == too_many_bytes);
  STATIC_REQUIRE(kv_descale_bytes({large, large, 1, large, large}, kv_layout::per_tensor) == large * 8);
}
