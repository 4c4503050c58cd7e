// From amax to a scale: descale and scale as two types, and the rule that makes one.
// SPDX-License-Identifier: MIT
#pragma once

#include "convert.hpp"
#include "errors.hpp"

namespace octet {
inline namespace v0 {

// value ~ code * descale: what checkpoints store, under every name (weight_scale, weight_scale_inv, input_scale,
// k_scale). One float; does not convert silently to or from its reciprocal, octet::scale.
class OCTET_MAY_ALIAS descale {
  float value_;

 public:
  descale() = default;
  OCTET_INLINE explicit constexpr descale(float value) : value_(value) {}
  OCTET_INLINE constexpr float value() const { return value_; }
};

// code ~ value * scale: the multiplier on the way in.
class OCTET_MAY_ALIAS scale {
  float value_;

 public:
  scale() = default;
  OCTET_INLINE explicit constexpr scale(float value) : value_(value) {}
  OCTET_INLINE constexpr float value() const { return value_; }
};

// 1 / x rounded to the nearest float.
OCTET_INLINE constexpr scale reciprocal(descale x) { return scale(exact::quotient(1, x.value())); }
OCTET_INLINE constexpr descale reciprocal(scale x) { return descale(exact::quotient(1, x.value())); }

namespace detail {

// Finite and above zero, by bits.
OCTET_INLINE constexpr bool is_usable_scale(float x) {
  return bit_cast<std::uint32_t>(x) - 1 < float_traits<float>::infinity - 1;
}

template <class Scale>
OCTET_HOST_INLINE void require_usable(const char* what, const Scale* p, std::size_t n) {
  require_pointer(what, p, n);
  for (std::size_t i = 0; i < n; ++i)
    require(is_usable_scale(p[i].value()), what, i, "is not finite and above zero; in all:", n);
}

}  // namespace detail

// A float array seen as descales or as scales: n floats, each finite and above zero, else an error naming the first
// that is not. The view is the same memory.
OCTET_HOST_INLINE const descale* as_descales(const float* p, std::size_t n) {
  const descale* view = reinterpret_cast<const descale*>(p);
  detail::require_usable("as_descales: descale number", view, n);
  return view;
}
OCTET_HOST_INLINE const scale* as_scales(const float* p, std::size_t n) {
  const scale* view = reinterpret_cast<const scale*>(p);
  detail::require_usable("as_scales: scale number", view, n);
  return view;
}

// What NaN and infinity in the data do to amax. In every case they are counted, and a NaN stays a NaN in the codes.
enum class nonfinite : unsigned char {
  propagate,  // amax is NaN if there is a NaN, else infinity; the descale is then NaN, and so is the whole group
  ignore,     // amax is that of the finite values; infinity saturates
  reject,     // an error
};

// The values a descale can take. A descale is rounded to its form first, and the rounded one is used on the way in.
enum class descale_form : unsigned char {
  float32,
  bf16,       // nearest
  f16,        // nearest
  e4m3_code,  // nearest; the block scales of NVFP4
  e8m0_up,  // the least power of two not below amax / largest (TransformerEngine, torchao RCEIL, DeepGEMM): never clips
  e8m0_floor,  // 2^(floor(log2 amax) - largest exponent) (OCP MX 1.0 6.3): clips amax in the upper part of a binade
  e8m0_ceil,   // 2^(ceil(log2 amax) - largest exponent) (torchao CEIL)
  e8m0_even,   // e8m0_floor of amax rounded to the format's mantissa bits (torchao EVEN)
};

// How a value meets its descale on the way in. The bytes differ where x / descale lies next to a tie.
enum class scaling : unsigned char {
  divide,       // x / descale: what was stored is what was used
  multiply,     // x * float(1 / descale) (vLLM per tensor, DeepGEMM)
  scale_first,  // scale = float(largest / amax), x * scale, descale = float(1 / scale) (TransformerEngine)
};

// How the descale of a group follows from its amax. The steps, in this order:
//   1. NaN and infinity: `on_nonfinite`.
//   2. amax is raised to `floor` and lowered to `cap`.
//   3. amax = 0: the descale is `zero`, the codes are zeros that keep their sign.
//   4. descale = amax / largest * 2^margin, to the nearest float; e8m0_floor, _ceil and _even: as their line says.
//   5. Clamped to 2^-126..2^126, so that it and its reciprocal are normal floats: neither a tiny amax nor flushing to
//      zero makes it 0 or infinite. An amax below largest * 2^-126 then does not reach the top of the format.
//   6. Rounded to `form`; a form with less range clamps to its least and largest positive value.
struct scale_rule {
  descale_form form = descale_form::float32;
  scaling on_the_way_in = scaling::divide;
  nonfinite on_nonfinite = nonfinite::ignore;
  int margin = 0;     // binades of headroom above amax
  float largest = 0;  // the value amax goes to; 0: the largest of the format. Some leave room: 224 of e4m3fnuz's 240
  float floor = 0;    // in the units of the data
  float cap = float_traits<float>::from_bits(float_traits<float>::infinity - 1);
  float zero = 1;  // finite and above zero
  OCTET_INLINE constexpr scale_rule() {}
};

// A group's descale, and the number its values are multiplied by on the way in: rounding x * factor to the nearest
// float gives the float that `scaling` names. For a division the factor is 1 / descale as a double (exact::quotient has
// the proof).
struct group_scale {
  descale stored;
  double factor;
};

OCTET_INLINE constexpr group_scale scale_of(descale d, scaling how) {
  return {d, how == scaling::divide ? 1.0 / exact::widen(d.value()) : exact::widen(reciprocal(d).value())};
}

namespace detail {

// 2^exponent as a double, |exponent| <= 1022.
OCTET_INLINE constexpr double power_of_two(int exponent) {
  return bit_cast<double>(static_cast<std::uint64_t>(exponent + float_traits<double>::bias)
                          << float_traits<double>::mantissa_bits);
}

OCTET_INLINE constexpr int exponent_of(double x) {
  return static_cast<int>(bit_cast<std::uint64_t>(x) >> float_traits<double>::mantissa_bits) -
         float_traits<double>::bias;
}

// Positive floats are ordered as their bits are.
OCTET_INLINE constexpr float larger(float a, float b) {
  return bit_cast<std::uint32_t>(a) < bit_cast<std::uint32_t>(b) ? b : a;
}
OCTET_INLINE constexpr float smaller(float a, float b) {
  return bit_cast<std::uint32_t>(b) < bit_cast<std::uint32_t>(a) ? b : a;
}

// A rule that cannot give a usable descale is an error that names the member at fault.
OCTET_HOST_INLINE void require_rule(const scale_rule& rule) {
  constexpr std::uint32_t infinity = float_traits<float>::infinity;
  require(is_usable_scale(rule.zero), "octet::scale_rule: zero is not finite and above zero");
  require(is_usable_scale(rule.cap), "octet::scale_rule: cap is not finite and above zero");
  require(bit_cast<std::uint32_t>(rule.floor) < infinity, "octet::scale_rule: floor is negative or not finite");
  require(bit_cast<std::uint32_t>(rule.largest) < infinity, "octet::scale_rule: largest is negative or not finite");
  require(rule.margin >= -126 && rule.margin <= 126, "octet::scale_rule: margin is not within -126 and 126");
}

// Step 4 and 5, as a float whose reciprocal is normal too.
template <class F>
OCTET_INLINE constexpr float unrounded_descale(float amax, const scale_rule& rule) {
  using D = float_traits<double>;
  constexpr int largest_exponent = (F::max_code >> F::mantissa_bits) - F::bias;
  constexpr std::uint64_t unit = std::uint64_t{1} << D::mantissa_bits, half_ulp = unit >> (F::mantissa_bits + 1);
  const float largest = bit_cast<std::uint32_t>(rule.largest) != 0 ? rule.largest : decode(F::from_bits(F::max_code));
  const std::uint64_t a = bit_cast<std::uint64_t>(exact::widen(amax));
  double d = 0;
  switch (rule.form) {
    case descale_form::e8m0_floor:
      d = power_of_two(exponent_of(bit_cast<double>(a)) - largest_exponent);
      break;
    case descale_form::e8m0_ceil:
      d = power_of_two(exponent_of(bit_cast<double>(a + unit - 1)) - largest_exponent);
      break;
    case descale_form::e8m0_even:
      d = power_of_two(exponent_of(bit_cast<double>(a + half_ulp)) - largest_exponent);
      break;
    default:
      d = exact::widen(exact::quotient(amax, largest));
  }
  const int exponent = exponent_of(d) + rule.margin;
  if (exponent < -126) return bit_cast<float>(0x00800000u);
  if (exponent >= 126) return bit_cast<float>(0x7E800000u);
  return exact::narrow<float>(d * power_of_two(rule.margin));
}

// Step 6.
OCTET_INLINE constexpr float round_to_form(float d, descale_form form) {
  switch (form) {
    case descale_form::float32:
      return d;
    case descale_form::bf16:
      return static_cast<float>(bfloat16(d));
    case descale_form::f16: {
      const float16 half(d);
      constexpr std::uint16_t largest = float_traits<float16>::infinity - 1;
      const std::uint16_t bits = half.bits() == 0 ? std::uint16_t{1} : half.bits() > largest ? largest : half.bits();
      return static_cast<float>(float16::from_bits(bits));
    }
    case descale_form::e4m3_code: {
      const e4m3 code(d);
      return decode(code.bits() == 0 ? e4m3::from_bits(1) : code);
    }
    default:
      return decode(encode<e8m0>(d));
  }
}

}  // namespace detail

// The descale of a group of values to be stored as F. amax: its largest magnitude, as octet::amax gives it (NaN or
// infinity: propagated). The result is finite and above zero unless amax is not finite: then it is NaN.
template <class F>
OCTET_INLINE constexpr group_scale scale_of(float amax, const scale_rule& rule) {
  static_assert(F::is_signed, "E8M0 holds scales, not scaled values");
  if (bit_cast<std::uint32_t>(amax) >= float_traits<float>::infinity) {
    const float nan = bit_cast<float>(float_traits<float>::sign_mask - 1);
    return {descale(nan), exact::widen(nan)};
  }
  amax = detail::smaller(detail::larger(amax, rule.floor), rule.cap);
  const bool is_zero = bit_cast<std::uint32_t>(amax) == 0;
  const float unrounded = is_zero ? rule.zero : detail::unrounded_descale<F>(amax, rule);
  const descale d(detail::round_to_form(unrounded, rule.form));
  if (rule.on_the_way_in != scaling::scale_first || rule.form != descale_form::float32 || is_zero)
    return scale_of(d, rule.on_the_way_in);
  // The scale by the same rule with the two numbers changed over; the clamp above is symmetric.
  const float largest = bit_cast<std::uint32_t>(rule.largest) != 0 ? rule.largest : decode(F::from_bits(F::max_code));
  const double raw = exact::widen(exact::quotient(largest, amax)) * detail::power_of_two(-rule.margin);
  const double bounded = detail::exponent_of(raw) >= 126   ? detail::power_of_two(126)
                         : detail::exponent_of(raw) < -126 ? detail::power_of_two(-126)
                                                           : raw;
  const scale s(exact::narrow<float>(bounded));
  return {reciprocal(s), exact::widen(s.value())};
}

}  // namespace v0
}  // namespace octet
