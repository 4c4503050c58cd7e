// Rounds a matrix to codes and descales and back: what an FP8 unit is fed, bit for bit.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <vector>

#include "int8_rounding.hpp"
#include "lab/parallel.hpp"
#include "octet/quantize.hpp"

namespace lab {

enum class number_format { e4m3, e5m2, int8 };

// Tiles of so many rows and columns share a descale; 0: all of them. One of the library's granularities, with sizes
// known only when the program runs. It is cut at multiples of its rows alone.
struct tile {
  std::size_t rows = 0, cols = 0;

  octet::tiling tiles(std::size_t all_rows, std::size_t all_cols) const {
    const auto size = [](std::size_t wanted, std::size_t all) { return wanted != 0 ? wanted : all != 0 ? all : 1; };
    return {{size(rows, all_rows), 0}, {size(cols, all_cols), 0}};
  }
  tile from_row(std::size_t) const { return *this; }
};

// Where descales come from.
enum class scale_source {
  found,         // float(amax / largest)
  power_of_two,  // the least power of two not below that
  mx,            // OCP MX: from the exponent of amax
  given,         // what `amaxes`, of a calibration text, give by `found`'s rule
  constant,      // `descale`, which is 1 where a recipe has no scale
};

struct rounding {
  number_format format = number_format::e4m3;
  tile shape;
  scale_source source = scale_source::found;
  float descale = 1;          // of scale_source::constant
  std::vector<float> amaxes;  // of scale_source::given: one a tile of the shape, which then has all rows
  int eighths = 0;  // descales are 2^(eighths / 8) times as large, to see what luck does; powers of two stay such
};

namespace detail {

inline constexpr std::size_t rows_a_slice = 128;  // a multiple of every tile's rows

inline bool found_by_slices(const rounding& r) { return r.shape.rows != 0; }

// Sums what body(first, last) lost over slices of rows.
template <class Body>
losses sum_over_slices(std::size_t rows, const Body& body) {
  losses total;
  std::mutex adding;
  for_each_slice(rows, rows_a_slice, [&](std::size_t first, std::size_t last) {
    const losses lost = body(first, last);
    const std::lock_guard<std::mutex> lock(adding);
    total += lost;
  });
  return total;
}

inline float luck(const rounding& r) { return static_cast<float>(std::exp2(r.eighths / 8.0)); }

template <class F>
octet::scale_rule rule_of(const rounding& r) {
  octet::scale_rule rule(r.source == scale_source::power_of_two ? octet::descale_form::e8m0_up
                         : r.source == scale_source::mx         ? octet::descale_form::e8m0_floor
                                                                : octet::descale_form::float32);
  if (r.eighths != 0) rule.largest = octet::decode(F::from_bits(F::max_code)) / luck(r);
  return rule;
}

template <class F>
losses round_fp8(octet::matrix_view<const float> in, octet::matrix_view<float> out, const rounding& r) {
  const octet::scale_rule rule = rule_of<F>(r);
  std::vector<F> codes(in.rows * in.cols);
  const octet::matrix_view<F> all(codes.data(), in.rows, in.cols);
  std::vector<octet::descale> descales(octet::descale_count(r.shape, in.rows, in.cols),
                                       octet::descale(r.descale * luck(r)));
  const bool known = r.source == scale_source::given || r.source == scale_source::constant;
  if (r.source == scale_source::given)
    for (std::size_t i = 0; i < descales.size(); ++i) descales[i] = octet::scale_of<F>(r.amaxes[i], rule).stored;
  if (!known && !found_by_slices(r)) octet::quantize_into(in, r.shape, rule, all, descales.data());
  const auto whole = octet::as_quantized(all, descales.data(), r.shape);
  return sum_over_slices(in.rows, [&](std::size_t first, std::size_t last) {
    const auto part = in.row_range(first, last - first);
    const auto quantized = whole.row_range(first, last - first);
    const octet::matrix_view<F> part_codes = all.row_range(first, last - first);
    if (known)
      octet::quantize_into(part, r.shape, quantized.descales, part_codes);
    else if (found_by_slices(r))
      octet::quantize_into(part, r.shape, rule, part_codes, descales.data() + (quantized.descales - descales.data()));
    const octet::statistics s = octet::measure(part, quantized);
    octet::dequantize_into(quantized, out.row_range(first, last - first));
    return losses{s.count, s.flushed, s.clipped};
  });
}

inline losses round_int8(octet::matrix_view<const float> in, octet::matrix_view<float> out, const rounding& r) {
  const auto descale_of = [&](float amax) { return int8::descale_of(amax, int8::largest / luck(r), luck(r)); };
  const auto descales_of = [&](std::vector<float> amaxes) {
    std::transform(amaxes.begin(), amaxes.end(), amaxes.begin(), descale_of);
    return amaxes;
  };
  std::vector<float> descales;
  if (r.source == scale_source::constant)
    descales.assign(octet::descale_count(r.shape, in.rows, in.cols), r.descale * luck(r));
  else if (r.source == scale_source::given)
    descales = descales_of(r.amaxes);
  else if (!found_by_slices(r))
    descales = descales_of(int8::amaxes(in, r.shape));
  return sum_over_slices(in.rows, [&](std::size_t first, std::size_t last) {
    const auto part = in.row_range(first, last - first);
    const std::vector<float> own = descales.empty() ? descales_of(int8::amaxes(part, r.shape)) : std::vector<float>();
    return int8::round(part, r.shape, descales.empty() ? own.data() : descales.data(),
                       out.row_range(first, last - first));
  });
}

}  // namespace detail

// out = the values that the codes of `in` stand for, and what was lost on the way. in and out may be the same memory.
inline losses round_values(octet::matrix_view<const float> in, octet::matrix_view<float> out, const rounding& r) {
  if (in.empty()) return {};
  switch (r.format) {
    case number_format::e4m3:
      return detail::round_fp8<octet::e4m3>(in, out, r);
    case number_format::e5m2:
      return detail::round_fp8<octet::e5m2>(in, out, r);
    default:
      return detail::round_int8(in, out, r);
  }
}

}  // namespace lab
