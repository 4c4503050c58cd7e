// What became of a tensor on its way to FP8 and back, with and without scales.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "csv.hpp"
#include "octet/quantize.hpp"
#include "table.hpp"

namespace lab {

using matrix = octet::matrix_view<const float>;

// A whole tensor as one row.
inline matrix whole(const std::vector<float>& values) { return {values.data(), 1, values.size(), values.size()}; }

struct outcome {
  double least_scale = 1, most_scale = 1;  // both 1 without a scale
  octet::statistics statistics;
};

// Codes of the values as they are: the scale is 1.
template <class F>
outcome without_scale(matrix values) {
  const octet::descale one(1.0f);
  std::vector<F> codes(values.rows * values.cols);
  const octet::matrix_view<F> view{codes.data(), values.rows, values.cols, values.cols};
  octet::quantize_into(values, octet::per_tensor{}, &one, view);
  return {1, 1, octet::measure(values, octet::quantized_view<F, octet::per_tensor>{view, &one, {}})};
}

// Codes of the values over their groups' descales.
template <class F, class Granularity>
outcome with_scales(matrix values, Granularity granularity) {
  const auto quantized = octet::quantize<F>(values, granularity);
  outcome o{std::numeric_limits<double>::infinity(), 0, octet::measure(values, quantized)};
  for (std::size_t i = 0; i < octet::descale_count(granularity, values.rows, values.cols); ++i) {
    const double scale = 1.0 / static_cast<double>(quantized.descales()[i].value());
    if (scale < o.least_scale) o.least_scale = scale;
    if (scale > o.most_scale) o.most_scale = scale;
  }
  return o;
}

inline std::string percent(double share) {
  if (share == 0) return "0 %";
  if (share == 1) return "100 %";
  return text("%.2f %%", 100 * share);
}
inline std::string share_of(std::uint64_t part, std::uint64_t count) {
  return percent(static_cast<double>(part) / static_cast<double>(count));
}
inline std::string error_of(const outcome& o) { return text("%.2f %%", 100 * o.statistics.mean_relative_error()); }
inline std::string flushed_of(const outcome& o) { return share_of(o.statistics.flushed, o.statistics.count); }
inline std::string clipped_of(const outcome& o) { return share_of(o.statistics.clipped, o.statistics.count); }
inline std::string snr_of(const outcome& o) {
  const double snr = o.statistics.snr_db();
  return std::isfinite(snr) ? text("%.1f dB", snr) : "-";
}
inline std::string scale_of(const outcome& o) {
  if (o.least_scale == 1 && o.most_scale == 1) return "1";
  if (o.least_scale == o.most_scale) return text("%.4g", o.most_scale);
  return text("%.3g to %.3g", o.least_scale, o.most_scale);
}

// Every number that is printed, and those that are only drawn.
class ledger {
 public:
  void add(const std::string& block, const std::string& data, const char* format, const std::string& scaling,
           const outcome& o) {
    const octet::statistics& s = o.statistics;
    const double snr = s.snr_db();
    file_.row({block, data, format, scaling, csv_number(o.least_scale), csv_number(o.most_scale),
               std::to_string(s.count), std::to_string(s.not_finite), std::to_string(s.clipped),
               std::to_string(s.flushed), text("%.6f", s.mean_relative_error()),
               std::isfinite(snr) ? text("%.2f", snr) : ""});
  }
  const std::string& str() const { return file_.str(); }

 private:
  csv file_{{"block", "data", "format", "scaling", "least_scale", "largest_scale", "count", "not_finite", "clipped",
             "flushed", "mean_relative_error", "snr_db"}};
};

}  // namespace lab
