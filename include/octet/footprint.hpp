// How many bytes: codes, descales and KV caches, counted before anything is allocated. Arithmetic on sizes only.
// SPDX-License-Identifier: MIT
#pragma once

#include "fp8.hpp"
#include "granularity.hpp"

namespace octet {
inline namespace v0 {

// Every count is 64 bits wide, on 32-bit machines too, and saturates: a count that 64 bits do not hold is
// too_many_bytes, and a sum or product with it stays there (times zero is zero). Compare with it once, at the end.
inline constexpr std::uint64_t too_many_bytes = ~std::uint64_t{0};

// a * b, saturating.
OCTET_INLINE constexpr std::uint64_t count_product(std::uint64_t a, std::uint64_t b) {
  return a != 0 && b > too_many_bytes / a ? too_many_bytes : a * b;
}

// a + b, saturating.
OCTET_INLINE constexpr std::uint64_t count_sum(std::uint64_t a, std::uint64_t b) {
  return b > too_many_bytes - a ? too_many_bytes : a + b;
}

// Bytes of `count` values of `bits` bits each, packed without gaps and rounded up to whole bytes. 8 * too_many_bytes
// bits are not needed on the way: whole groups of eight values are `bits` bytes, and at most seven values remain.
OCTET_INLINE constexpr std::uint64_t packed_bytes(std::uint64_t count, std::uint64_t bits) {
  const std::uint64_t rest = count_product(count % 8, bits);
  if ((count == too_many_bytes && bits != 0) || rest == too_many_bytes) return too_many_bytes;
  return count_sum(count_product(count / 8, bits), rest / 8 + (rest % 8 != 0));
}

// Codes of a matrix of rows x cols. 8-bit formats: one byte a value. FP6 and FP4 (width 6 and 4): as if packed, the
// whole matrix as one run, rounded up to whole bytes; unpacked, as quantize writes them, they take a byte a value too.
template <class F>
OCTET_INLINE constexpr std::uint64_t code_bytes(std::uint64_t rows, std::uint64_t cols) {
  static_assert(is_fp8_v<F>, "F is one of the library's formats");
  return packed_bytes(count_product(rows, cols), F::width);
}

// Descales of a matrix of rows x cols: one a tile of the granularity, none for an empty
// matrix. bytes_per_descale: 4 for float, 2 for bfloat16, 1 for e8m0. A shard that begins inside a tile and whose last
// row or column then has a number that std::size_t does not hold saturates.
template <class Granularity>
OCTET_INLINE constexpr std::uint64_t descale_bytes(const Granularity& granularity, std::size_t rows, std::size_t cols,
                                                   std::uint64_t bytes_per_descale = 4) {
  const tiling tiles = granularity.tiles(rows, cols);
  constexpr std::size_t most = ~std::size_t{0};
  if (rows == 0 || cols == 0) return 0;
  if (tiles.rows.first > most - rows || tiles.cols.first > most - cols) return too_many_bytes;
  return count_product(count_product(tiles.rows.count(rows), tiles.cols.count(cols)), bytes_per_descale);
}

// The keys and values of a transformer: two tensors a layer, [batch, tokens, kv_heads, head_dim] each.
// kv_heads counts the heads that are stored: fewer than the query heads under grouped-query attention.
struct kv_shape {
  std::uint64_t layers = 0, kv_heads = 0, head_dim = 0;
  std::uint64_t tokens = 0;  // of one sequence
  std::uint64_t batch = 1;   // sequences
};

// Who shares a descale in a KV cache; keys and values have their own in all of them. The first three are found once and
// serve every sequence; a token's are found when it is written and grow with the cache.
enum class kv_layout : unsigned char {
  per_tensor,      // [layers]: what checkpoints call k_scale and v_scale
  per_head,        // [layers, kv_heads]
  per_channel,     // [layers, kv_heads, head_dim]
  per_token_head,  // [layers, batch, tokens, kv_heads]
};

// Values in a KV cache, keys and values together.
OCTET_INLINE constexpr std::uint64_t kv_count(const kv_shape& s) {
  const std::uint64_t token = count_product(count_product(2, s.layers), count_product(s.kv_heads, s.head_dim));
  return count_product(token, count_product(s.tokens, s.batch));
}

// Bytes of a KV cache without its descales. bits: 8 for FP8, 16 for half and bfloat16, 32 for float.
OCTET_INLINE constexpr std::uint64_t kv_code_bytes(const kv_shape& s, std::uint64_t bits = 8) {
  return packed_bytes(kv_count(s), bits);
}

// Bytes of a KV cache's descales.
OCTET_INLINE constexpr std::uint64_t kv_descale_bytes(const kv_shape& s, kv_layout layout,
                                                      std::uint64_t bytes_per_descale = 4) {
  std::uint64_t count = count_product(2, s.layers);
  if (layout != kv_layout::per_tensor) count = count_product(count, s.kv_heads);
  if (layout == kv_layout::per_channel) count = count_product(count, s.head_dim);
  if (layout == kv_layout::per_token_head) count = count_product(count, count_product(s.tokens, s.batch));
  return count_product(count, bytes_per_descale);
}

}  // namespace v0
}  // namespace octet
