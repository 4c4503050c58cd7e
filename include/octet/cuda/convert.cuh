// Several values in device code: what a thread holds between one load and one store, encoded and decoded.
// SPDX-License-Identifier: MIT
#pragma once

#include "../convert.hpp"

namespace octet {
inline namespace v0 {
namespace cuda {

// N values side by side, a power of two of them, aligned so that up to 16 bytes are one access.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack {
  static_assert(N > 0 && (N & (N - 1)) == 0, "a pack holds a power of two of values");
  T value[N];
  OCTET_INLINE constexpr T& operator[](int i) { return value[i]; }
  OCTET_INLINE constexpr const T& operator[](int i) const { return value[i]; }
};

namespace detail {

// The codes of two values, the first in the low byte: one instruction where there is one.
template <class F, class T>
OCTET_INLINE std::uint16_t encode_pair(T first, T second) {
#if OCTET_HAS_FP8_INSTRUCTIONS
  if constexpr (octet::detail::has_instructions_from<F, T>)
    return octet::detail::encode_by_instruction<F>(first, second);
#endif
  return static_cast<std::uint16_t>(encode<F>(first).bits() | encode<F>(second).bits() << 8);
}

// The values of two codes.
template <class T, class F>
OCTET_INLINE pack<T, 2> decode_pair(F first, F second) {
#if OCTET_HAS_FP8_INSTRUCTIONS
  if constexpr (octet::detail::has_instructions<F> && is_float_v<T>) {
    const std::uint32_t both =
        octet::detail::decode_by_instruction<F>(static_cast<std::uint16_t>(first.bits() | second.bits() << 8));
    const auto low = static_cast<std::uint16_t>(both), high = static_cast<std::uint16_t>(both >> 16);
    if constexpr (octet::detail::decodes_to_halves<F> && octet::detail::is_half<T>)
      return {float_traits<T>::from_bits(low), float_traits<T>::from_bits(high)};
    else
      return {octet::detail::from_value_bits<T>(octet::detail::widen_decoded<F>(low)),
              octet::detail::from_value_bits<T>(octet::detail::widen_decoded<F>(high))};
  }
#endif
  return {decode<T>(first), decode<T>(second)};
}

}  // namespace detail

// The codes of N values: nearest even (E8M0: up), saturating, NaN as in encode of one value, and the same bytes. Pairs
// from float and the 16-bit floats are one instruction, of E4M3 and E5M2 on sm_89 and later, of E8M0, FP6 and FP4 in code
// for a family (sm_100f). A 16-bit float that the instruction does not take is widened first. Never fails.
template <class F, class T, int N>
OCTET_INLINE pack<F, N> encode(const pack<T, N>& x) {
  pack<F, N> codes;
  if constexpr (N == 1) {
    codes.value[0] = octet::encode<F>(x.value[0]);
  } else {
    for (int i = 0; i < N; i += 2) {
      const std::uint16_t pair = detail::encode_pair<F>(x.value[i], x.value[i + 1]);
      codes.value[i] = bit_cast<F>(static_cast<std::uint8_t>(pair));
      codes.value[i + 1] = bit_cast<F>(static_cast<std::uint8_t>(pair >> 8));
    }
  }
  return codes;
}

// The values of N codes, exactly as decode of one gives them.
template <class T, class F, int N>
OCTET_INLINE pack<T, N> decode(const pack<F, N>& codes) {
  pack<T, N> x;
  if constexpr (N == 1) {
    x.value[0] = octet::decode<T>(codes.value[0]);
  } else {
    for (int i = 0; i < N; i += 2) {
      const pack<T, 2> pair = detail::decode_pair<T>(codes.value[i], codes.value[i + 1]);
      x.value[i] = pair.value[0];
      x.value[i + 1] = pair.value[1];
    }
  }
  return x;
}

}  // namespace cuda
}  // namespace v0
}  // namespace octet
