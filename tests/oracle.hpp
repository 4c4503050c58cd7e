// A second opinion: formats from their bit fields, rounding by search over the exact values. It includes no Octet.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <vector>

namespace oracle {

enum class kind {
  ieee,      // largest exponent field: infinity (mantissa 0) and NaN (the rest)
  fn,        // all ones: NaN. OCP OFP8 1.0, table 1
  fnuz,      // sign bit alone: NaN
  p3109,     // sign bit alone: NaN; all ones below the sign: infinity. IEEE P3109 draft 3.2
  finite,    // OCP MX 1.0, FP6 and FP4
  exponent,  // OCP MX 1.0, E8M0
};

// What a format is, in numbers; `bias` is the exponent field of 1.0.
struct format {
  const char* name;
  int exponent_bits, mantissa_bits, bias;
  kind special;
};

inline constexpr format formats[] = {
    {"e4m3", 4, 3, 7, kind::fn},         {"e5m2", 5, 2, 15, kind::ieee},      {"e4m3_ieee", 4, 3, 7, kind::ieee},
    {"e4m3fnuz", 4, 3, 8, kind::fnuz},   {"e5m2fnuz", 5, 2, 16, kind::fnuz},  {"e4m3b11fnuz", 4, 3, 11, kind::fnuz},
    {"e3m4", 3, 4, 3, kind::ieee},       {"p3109_p3", 5, 2, 16, kind::p3109}, {"p3109_p4", 4, 3, 8, kind::p3109},
    {"e8m0", 8, 0, 127, kind::exponent}, {"e2m3", 2, 3, 1, kind::finite},     {"e3m2", 3, 2, 3, kind::finite},
    {"e2m1", 2, 1, 1, kind::finite},
};

enum class mode { nearest_even, nearest_away, toward_zero, upward, downward };

// The value of a code, by the definition of its fields.
inline double value(const format& f, unsigned code) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  if (f.special == kind::exponent) return code == 255 ? nan : std::ldexp(1.0, static_cast<int>(code) - 127);
  const unsigned ones = (1u << f.exponent_bits) - 1;
  const unsigned mantissa = code & ((1u << f.mantissa_bits) - 1);
  const unsigned exponent = (code >> f.mantissa_bits) & ones;
  const bool negative = (code >> (f.exponent_bits + f.mantissa_bits) & 1) != 0;
  const double sign = negative ? -1 : 1;
  const bool all_ones = exponent == ones && mantissa == (1u << f.mantissa_bits) - 1;
  const bool sign_alone = negative && exponent == 0 && mantissa == 0;
  if (f.special == kind::ieee && exponent == ones) return mantissa == 0 ? sign * infinity : nan;
  if (f.special == kind::fn && all_ones) return nan;
  if ((f.special == kind::fnuz || f.special == kind::p3109) && sign_alone) return nan;
  if (f.special == kind::p3109 && all_ones) return sign * infinity;
  const double significand = mantissa + (exponent == 0 ? 0.0 : std::ldexp(1.0, f.mantissa_bits));
  const int power = (exponent == 0 ? 1 : static_cast<int>(exponent)) - f.bias - f.mantissa_bits;
  return sign * std::ldexp(significand, power);
}

// By its bits, so that tables are right under -ffast-math too.
inline bool is_finite(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return (bits >> 52 & 0x7FF) != 0x7FF;
}

// A magnitude between two neighbours of the grid: at or above the one with the code `lower`, `fraction` of the way
// to the next. The grid goes on for one step beyond the largest finite value: lower == table.largest, fraction > 0.
// At or beyond that step, `far` is set.
template <class Real>
struct place {
  unsigned lower;
  Real fraction;  // 0 <= fraction < 1, exact
  bool far;
};

// All that is to be known about one format.
class table {
 public:
  explicit table(const format& f) : about(f) {
    codes = 1u << (f.special == kind::exponent ? 8 : 1 + f.exponent_bits + f.mantissa_bits);
    for (unsigned code = 0; code < codes; ++code) all.push_back(value(f, code));
    // The positive values in order. That codes are in the order of their values is checked, not assumed.
    const unsigned end = f.special == kind::exponent ? codes : codes / 2;
    for (unsigned code = 0; code < end && is_finite(all[code]); ++code) {
      if (!grid.empty() && !(grid.back() < all[code])) std::abort();
      grid.push_back(all[code]);
    }
    largest = static_cast<unsigned>(grid.size()) - 1;
    sign = f.special == kind::exponent ? 0 : codes / 2;
    for (unsigned code = 0; code < largest; ++code) steps.push_back(grid[code + 1] - grid[code]);
    // Powers of two have another step above them than below; only E8M0 ends in one.
    steps.push_back(f.special == kind::exponent ? grid[largest] : steps.back());
    beyond = grid[largest] + steps.back();
    signed_zero = f.special == kind::ieee || f.special == kind::fn || f.special == kind::finite;
    switch (f.special) {
      case kind::ieee:
        infinite = largest + 1, nan = codes / 2 - 1, nonfinite = infinite;
        break;
      case kind::p3109:
        infinite = largest + 1, nan = sign, nonfinite = infinite;
        break;
      case kind::fn:
      case kind::exponent:
        nan = largest + 1, nonfinite = nan;
        break;
      case kind::fnuz:
        nan = sign, nonfinite = nan;
        break;
      case kind::finite:
        nan = largest, nonfinite = largest;
        break;
    }
  }

  // Where a magnitude lies. Everything here is exact: x - lower is (Sterbenz: lower <= x <= 2 lower, or lower is
  // 0), and steps are powers of two.
  template <class Real>
  place<Real> find(Real x) const {
    if (x < static_cast<Real>(grid[0])) return {0, 0, false};  // E8M0 has no zero: below its least value lies nothing
    if (x >= static_cast<Real>(beyond)) return {largest, 0, true};
    const auto above =
        std::upper_bound(grid.begin(), grid.end(), x, [](Real a, double b) { return a < static_cast<Real>(b); });
    const auto lower = static_cast<std::size_t>(above - grid.begin()) - 1;
    return {static_cast<unsigned>(lower), (x - static_cast<Real>(grid[lower])) / static_cast<Real>(steps[lower]),
            false};
  }

  // Whether the upper neighbour is chosen.
  template <class Real>
  static bool goes_up(const place<Real>& p, mode m, bool negative) {
    if (p.fraction == 0) return false;
    switch (m) {
      case mode::nearest_even:
        return p.fraction > Real{0.5} || (p.fraction == Real{0.5} && p.lower % 2 == 1);
      case mode::nearest_away:
        return p.fraction >= Real{0.5};
      case mode::toward_zero:
        return false;
      case mode::upward:
        return !negative;
      case mode::downward:
        return negative;
    }
    return false;
  }

  // floor(magnitude in units of the last place + random / 2^32), as a choice between the neighbours; exact in double.
  template <class Real>
  static bool goes_up(const place<Real>& p, std::uint32_t random) {
    using Wide = std::common_type_t<Real, double>;
    return static_cast<Wide>(p.fraction) * Wide{4294967296.0} >= Wide{4294967296.0} - Wide{static_cast<double>(random)};
  }

  // The code of a number with that place. `infinite_input`: an infinity follows the overflow rule in every mode.
  template <class Real>
  unsigned finish(const place<Real>& p, bool up, bool negative, bool inward, bool saturate, bool infinite_input) const {
    unsigned code = up ? p.lower + 1 : p.lower;
    if (infinite_input || p.far) code = largest + 1;
    if (code > largest) code = saturate || (inward && !infinite_input) ? largest : nonfinite;
    return negative && (code != 0 || signed_zero) ? code | sign : code;
  }

  bool inward(mode m, bool negative) const {
    return m == mode::toward_zero || m == (negative ? mode::upward : mode::downward);
  }

  // The code of x. E8M0 ignores the sign, the modes too.
  template <class Real>
  unsigned encode(Real x, mode m, bool saturate) const {
    if (std::isnan(x)) return nan_code(x);
    const bool negative = std::signbit(x) && sign != 0;
    const place<Real> p = find(std::fabs(x));
    return finish(p, goes_up(p, m, negative), negative, inward(m, negative), saturate, std::isinf(x));
  }

  // The code of x, rounded stochastically.
  template <class Real>
  unsigned encode_stochastic(Real x, std::uint32_t random, bool saturate) const {
    if (std::isnan(x)) return nan_code(x);
    const bool negative = std::signbit(x) && sign != 0;
    const place<Real> p = find(std::fabs(x));
    return finish(p, goes_up(p, random), negative, false, saturate, std::isinf(x));
  }

  // A NaN loses its sign, but from double (and long double) it keeps it where the format has -NaN, and in E5M2 the
  // two top mantissa bits come with it.
  template <class Real>
  unsigned nan_code(Real x) const {
    if (std::is_same_v<Real, float> || (about.special != kind::ieee && about.special != kind::fn)) return nan;
    unsigned code = nan;
    if (about.special == kind::ieee && about.exponent_bits == 5) {
      const double narrow = static_cast<double>(x);
      std::uint64_t bits;
      std::memcpy(&bits, &narrow, sizeof bits);
      code = 0x7C | 2 | (bits >> 50 & 3);
    }
    return std::signbit(x) ? code | sign : code;
  }

  format about;
  unsigned codes = 0;         // how many there are
  unsigned largest = 0;       // the code of the largest finite value
  unsigned infinite = 0;      // the code of +infinity, 0 if there is none
  unsigned nan = 0;           // what a NaN becomes
  unsigned nonfinite = 0;     // what an overflow becomes, if it does not saturate
  unsigned sign = 0;          // the sign bit
  bool signed_zero = false;   // has a -0
  double beyond = 0;          // where the grid would go on above the largest value
  std::vector<double> all;    // the value of every code
  std::vector<double> grid;   // the value of every nonnegative finite code
  std::vector<double> steps;  // from there to the next
};

inline const table& of(std::size_t index) {
  static const std::vector<table> tables(std::begin(formats), std::end(formats));
  return tables[index];
}

// x rounded to the nearest value with `digits` significant bits and at least the spacing 2^least, ties to even. In
// double, by the definition: scale the spacing to 1, round to an integer, scale back.
inline double rounded(double x, int digits, int least, double limit) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int spacing = std::max(exponent - digits, least);
  const double y = std::ldexp(std::nearbyint(std::ldexp(x, -spacing)), spacing);
  return std::fabs(y) > limit ? std::copysign(std::numeric_limits<double>::infinity(), x) : y;
}

// Random bits for inputs: splitmix64 (Steele, Lea, Flood 2014).
class random {
 public:
  explicit random(std::uint64_t seed) : state(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state;
};

}  // namespace oracle
