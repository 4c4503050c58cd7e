// Octet's 13 formats as types, each beside the oracle's table in the oracle's order, and a count of differences.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "octet/fp8.hpp"
#include "oracle.hpp"

template <class F>
struct format_tag {
  using type = F;
};

template <class... F>
struct format_list {
  template <class G>
  static constexpr std::size_t index_of() {
    std::size_t index = 0;
    (void)((std::is_same_v<F, G> || (++index, false)) || ...);
    return index;
  }
};

using all_formats =
    format_list<octet::e4m3, octet::e5m2, octet::e4m3_ieee, octet::e4m3fnuz, octet::e5m2fnuz, octet::e4m3b11fnuz,
                octet::e3m4, octet::p3109_p3, octet::p3109_p4, octet::e8m0, octet::e2m3, octet::e3m2, octet::e2m1>;

// What tests of every row's kernels take. All formats are minutes of compiling; a build that repeats another one with
// another compiler or for another machine takes one of each kind.
#ifdef OCTET_TEST_FEW_FORMATS
using kernel_formats = format_list<octet::e4m3, octet::e5m2, octet::e4m3fnuz, octet::e8m0, octet::e2m1>;
#else
using kernel_formats = all_formats;
#endif

// Calls visit(format_tag<F>, its table) for every format of the list.
template <class... F, class Visit>
void for_each_of(format_list<F...>, Visit&& visit) {
  (visit(format_tag<F>{}, oracle::of(all_formats::index_of<F>())), ...);
}
template <class Visit>
void for_each_format(Visit&& visit) {
  for_each_of(all_formats{}, visit);
}
template <class Visit>
void for_each_kernel_format(Visit&& visit) {
  for_each_of(kernel_formats{}, visit);
}

inline constexpr octet::overflow overflows[] = {octet::overflow::saturate, octet::overflow::nonfinite};

inline constexpr octet::rounding roundings[] = {octet::rounding::nearest_even, octet::rounding::nearest_away,
                                                octet::rounding::toward_zero, octet::rounding::upward,
                                                octet::rounding::downward};

inline oracle::mode oracle_mode(octet::rounding r) {
  switch (r) {
    case octet::rounding::nearest_even:
      return oracle::mode::nearest_even;
    case octet::rounding::nearest_away:
      return oracle::mode::nearest_away;
    case octet::rounding::toward_zero:
      return oracle::mode::toward_zero;
    case octet::rounding::upward:
      return oracle::mode::upward;
    case octet::rounding::downward:
      break;
  }
  return oracle::mode::downward;
}

// Counts comparisons and keeps the first difference in words. A check of `differences` at the end replaces one per
// element.
class tally {
 public:
  template <class Describe>
  void expect(bool same, Describe&& describe) {
    ++compared;
    if (!same && differences++ == 0) first = describe();
  }
  void add(const tally& other) {
    if (differences == 0) first = other.first;
    compared += other.compared;
    differences += other.differences;
  }
  std::uint64_t compared = 0, differences = 0;
  std::string first;
};

// "e4m3: 3F880000 gives 39, not 38"
inline std::string difference(const char* what, unsigned long long input, unsigned long long got,
                              unsigned long long wanted) {
  char text[160];
  std::snprintf(text, sizeof text, "%s: %llX gives %02llX, not %02llX", what, input, got, wanted);
  return text;
}
