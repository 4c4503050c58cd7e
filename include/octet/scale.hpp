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
OCTET_HOST_INLINE void require_usable(const char* where, const Scale* p, std::size_t n) {
  require_pointer(where, "the array", p, n, "values");
  for (std::size_t i = 0; i < n; ++i)
    require(is_usable_scale(p[i].value()), where, "number", i, "is not finite and above zero; there are", n);
}

}  // namespace detail

// Views of the same memory. A float array as descales or scales: n floats, each finite and above zero, else an error
// that gives the number of the first that is not. Memory for descales, to be written: any floats. Descales as floats.
[[nodiscard]] OCTET_HOST_INLINE const descale* as_descales(const float* p, std::size_t n) {
  const descale* view = reinterpret_cast<const descale*>(p);
  detail::require_usable("as_descales", view, n);
  return view;
}
[[nodiscard]] OCTET_HOST_INLINE const scale* as_scales(const float* p, std::size_t n) {
  const scale* view = reinterpret_cast<const scale*>(p);
  detail::require_usable("as_scales", view, n);
  return view;
}
[[nodiscard]] OCTET_HOST_INLINE descale* as_descales(float* memory) { return reinterpret_cast<descale*>(memory); }
[[nodiscard]] OCTET_HOST_INLINE const float* as_floats(const descale* p) { return reinterpret_cast<const float*>(p); }

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
//   3. amax = 0: the descale is `zero` (and goes on at step 5), the codes are zeros that keep their sign.
//   4. descale = amax / largest * 2^margin, to the nearest float; e8m0_floor, _ceil and _even: as their line says,
//      times 2^margin, without `largest`.
//   5. Clamped to 2^-126..2^126, so that it and its reciprocal are normal floats: neither a tiny amax nor flushing to
//      zero makes it 0 or infinite. An amax below largest * 2^-126 then does not reach the top of the format.
//   6. Rounded to `form`; a form with less range clamps to its least and largest positive value.
struct scale_rule {
  descale_form form;
  scaling on_the_way_in;
  nonfinite on_nonfinite = nonfinite::ignore;
  int margin = 0;     // binades of headroom above amax
  float largest = 0;  // the value amax goes to; 0: the largest of the format. Some leave room: 224 of e4m3fnuz's 240
  float floor = 0;    // in the units of the data
  float cap = float_traits<float>::from_bits(float_traits<float>::infinity - 1);
  float zero = 1;  // finite and above zero
  OCTET_INLINE explicit constexpr scale_rule(descale_form f = descale_form::float32, scaling s = scaling::divide)
      : form(f), on_the_way_in(s) {}
};

// A group's descale, and how its values meet it on the way in: as the float x / stored, or x * multiplier.
struct group_scale {
  descale stored;
  scale multiplier;
  bool divides;
};

// For a descale that is given, finite and above zero; scaling::scale_first is then scaling::multiply. The multiplier is
// finite: the reciprocal of a descale below 2^-128 would not be.
[[nodiscard]] OCTET_INLINE constexpr group_scale scale_of(descale d, scaling how) {
  const float multiplier = reciprocal(d).value();
  const bool finite = bit_cast<std::uint32_t>(multiplier) != float_traits<float>::infinity;
  constexpr float most = float_traits<float>::from_bits(float_traits<float>::infinity - 1);
  return {d, scale(finite ? multiplier : most), how == scaling::divide};
}

namespace detail {

// Positive floats are ordered as their bits are.
OCTET_INLINE constexpr float larger(float a, float b) {
  return bit_cast<std::uint32_t>(a) < bit_cast<std::uint32_t>(b) ? b : a;
}
OCTET_INLINE constexpr float smaller(float a, float b) {
  return bit_cast<std::uint32_t>(b) < bit_cast<std::uint32_t>(a) ? b : a;
}

// What keeps a rule from giving a usable descale, naming the member at fault; null if nothing does.
OCTET_HOST_INLINE constexpr const char* fault_of(const scale_rule& rule) {
  constexpr std::uint32_t infinity = float_traits<float>::infinity;
  if (!is_usable_scale(rule.zero)) return "octet::scale_rule: zero is not finite and above zero";
  if (!is_usable_scale(rule.cap)) return "octet::scale_rule: cap is not finite and above zero";
  if (bit_cast<std::uint32_t>(rule.floor) >= infinity) return "octet::scale_rule: floor is negative or not finite";
  if (bit_cast<std::uint32_t>(rule.largest) >= infinity) return "octet::scale_rule: largest is negative or not finite";
  if (rule.margin < -126 || rule.margin > 126) return "octet::scale_rule: margin is not within -126 and 126";
  return nullptr;
}
OCTET_HOST_INLINE void require_rule(const scale_rule& rule) {
  if (const char* const fault = fault_of(rule); fault != nullptr) fail(fault);
}

// Step 5, and the one rounding of step 4. (x comes from floats, so it is 0 or a normal double.)
OCTET_INLINE constexpr float bounded(double x) {
  const int exponent = exact::exponent_of(x);
  return exponent < -126 ? 0x1p-126f : exponent >= 126 ? 0x1p126f : exact::narrow<float>(x);
}

// a / b * 2^margin. (Without a margin the same by the quotient, for which device code need not go by way of double.)
OCTET_INLINE constexpr float bounded_ratio(float a, float b, int margin) {
  if (margin == 0) return larger(0x1p-126f, smaller(0x1p126f, exact::quotient(a, b)));
  return bounded(exact::wide_quotient(a, b) * exact::power_of_two(margin));
}

// A power of two from the exponent of amax alone, after `added` to its bits as a double.
template <class F>
OCTET_INLINE constexpr float bounded_exponent(float amax, std::uint64_t added, int margin) {
  constexpr int largest_exponent = (F::max_code >> F::mantissa_bits) - F::bias;
  const std::uint64_t bits = bit_cast<std::uint64_t>(exact::widen(amax)) + added;
  return bounded(exact::power_of_two(exact::exponent_of(bit_cast<double>(bits)) - largest_exponent + margin));
}

// Steps 4 and 5.
template <class F>
OCTET_INLINE constexpr float unrounded_descale(float amax, float largest, const scale_rule& rule) {
  constexpr std::uint64_t one = std::uint64_t{1} << float_traits<double>::mantissa_bits;
  switch (rule.form) {
    case descale_form::e8m0_floor:
      return bounded_exponent<F>(amax, 0, rule.margin);
    case descale_form::e8m0_ceil:
      return bounded_exponent<F>(amax, one - 1, rule.margin);
    case descale_form::e8m0_even:
      return bounded_exponent<F>(amax, one >> (F::mantissa_bits + 1), rule.margin);
    default:
      return bounded_ratio(amax, largest, rule.margin);
  }
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
      // e8m0_up never clips: an amax above largest * 2^k is so by a unit of its last place, so their quotient exceeds
      // 2^k by more than 2^-24 of it, and did not round down to 2^k.
      return decode(encode<e8m0>(d));
  }
}

}  // namespace detail

// The descale of a group of values to be stored as F. amax: its largest magnitude, as octet::amax gives it (a sign is
// ignored; NaN or infinity: propagated). The result is finite and above zero unless amax is not finite: then it is NaN.
template <class F>
[[nodiscard]] OCTET_INLINE constexpr group_scale scale_of(float amax, const scale_rule& rule) {
  static_assert(F::is_signed, "E8M0 holds scales, not scaled values");
  amax = bit_cast<float>(bit_cast<std::uint32_t>(amax) & (float_traits<float>::sign_mask - 1));
  if (bit_cast<std::uint32_t>(amax) >= float_traits<float>::infinity) {
    const float nan = bit_cast<float>(float_traits<float>::sign_mask - 1);
    return {descale(nan), scale(nan), true};
  }
  amax = detail::smaller(detail::larger(amax, rule.floor), rule.cap);
  const float largest = bit_cast<std::uint32_t>(rule.largest) != 0 ? rule.largest : decode(F::from_bits(F::max_code));
  const bool is_zero = bit_cast<std::uint32_t>(amax) == 0;
  if (rule.on_the_way_in == scaling::scale_first && rule.form == descale_form::float32 && !is_zero) {
    const scale s(detail::bounded_ratio(largest, amax, -rule.margin));
    return {reciprocal(s), s, false};
  }
  const float unrounded =
      is_zero ? detail::bounded(exact::widen(rule.zero)) : detail::unrounded_descale<F>(amax, largest, rule);
  return scale_of(descale(detail::round_to_form(unrounded, rule.form)), rule.on_the_way_in);
}

}  // namespace v0
}  // namespace octet
