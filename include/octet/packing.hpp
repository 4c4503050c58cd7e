// FP6 and FP4 codes in fewer bytes: packed as a stream of bits, and unpacked again.
// SPDX-License-Identifier: MIT
#pragma once

#include "errors.hpp"
#include "fp8.hpp"

namespace octet {
inline namespace v0 {

// Bytes of n packed codes: F::width bits each, rounded up to whole bytes.
template <class F>
[[nodiscard]] OCTET_INLINE constexpr std::size_t packed_size(std::size_t n) {
  constexpr std::size_t width = static_cast<std::size_t>(F::width);
  return n / 8 * width + (n % 8 * width + 7) / 8;
}

// in: n codes. out: packed_size<F>(n) bytes; may not overlap. Code i lies in the bits i * width and following of a
// stream whose bit b is bit b % 8 of byte b / 8: of two FP4 codes in a byte the first is in the low half, four FP6
// codes fill three bytes. Unused bits of the last byte are zero. Errors as errors.hpp says. Source: OCP MX 1.0 5.3.3
// (FP4), safetensors F4.
template <class F, std::enable_if_t<is_fp8_v<F>, int> = 0>
OCTET_HOST_INLINE void pack(const F* in, unsigned char* out, std::size_t n) {
  detail::require(n <= static_cast<std::size_t>(-1) / 16, "octet::pack: more codes than memory holds");
  detail::require_pointer("pack", "input", in, n, "codes");
  detail::require_pointer("pack", "output", out, n, "codes");
  detail::require_apart("pack", "output at a distance of", in, n, out, packed_size<F>(n));
  unsigned held = 0;
  int bits = 0;
  for (std::size_t i = 0; i < n; ++i) {
    held |= unsigned{in[i].bits()} << bits;
    for (bits += F::width; bits >= 8; bits -= 8) {
      *out++ = static_cast<unsigned char>(held);
      held >>= 8;
    }
  }
  if (bits > 0) *out = static_cast<unsigned char>(held);
}

// in: packed_size<F>(n) bytes. out: n codes; may not overlap. The order of pack.
template <class F, std::enable_if_t<is_fp8_v<F>, int> = 0>
OCTET_HOST_INLINE void unpack(const unsigned char* in, F* out, std::size_t n) {
  detail::require(n <= static_cast<std::size_t>(-1) / 16, "octet::unpack: more codes than memory holds");
  detail::require_pointer("unpack", "input", in, n, "codes");
  detail::require_pointer("unpack", "output", out, n, "codes");
  detail::require_apart("unpack", "output at a distance of", in, packed_size<F>(n), out, n);
  unsigned held = 0;
  int bits = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (bits < F::width) {
      held |= unsigned{*in++} << bits;
      bits += 8;
    }
    out[i] = F::from_bits(static_cast<std::uint8_t>(held));
    held >>= F::width;
    bits -= F::width;
  }
}

}  // namespace v0
}  // namespace octet
