// What became of a tensor on its way to FP8 and back, with and without scales.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lab/csv.hpp"
#include "lab/text.hpp"
#include "octet/quantize.hpp"

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

inline std::string share_of(std::uint64_t part, std::uint64_t count) {
  if (part == 0) return "0 %";
  if (part == count) return "100 %";
  return text("%.2f %%", 100 * static_cast<double>(part) / static_cast<double>(count));
}
inline std::string error_of(const outcome& o) {
  const double error = o.statistics.mean_relative_error();
  if (std::isnan(error)) return "-";
  return error == 0 ? "0 %" : text("%.2f %%", 100 * error);
}
inline std::string flushed_of(const outcome& o) { return share_of(o.statistics.flushed, o.statistics.count); }
inline std::string clipped_of(const outcome& o) { return share_of(o.statistics.clipped, o.statistics.count); }
inline std::string snr_of(const outcome& o) {
  const double snr = o.statistics.snr_db();
  if (std::isnan(snr)) return "-";
  return std::isinf(snr) ? "exact" : text("%.1f dB", snr);
}
inline std::string scale_of(const outcome& o) {
  if (o.least_scale == 1 && o.most_scale == 1) return "1";
  if (o.least_scale == o.most_scale) return text("%.4g", o.most_scale);
  return text("%.3g to %.3g", o.least_scale, o.most_scale);
}

// What these words mean, to be printed below the tables.
inline const char* const definitions =
    "Error: mean of |decoded - x| / |x| over all x but 0, NaN and infinity.\n"
    "SNR: 10 log10(sum of x^2 / sum of (decoded - x)^2) over the same x.\n"
    "Flushed: values other than 0 whose code is a zero, as a share of all values.\n"
    "Clipped: finite values that would round beyond the format's largest, which replaces them, as a share of all.\n"
    "0 %: exactly none; 0.00 %: some, rounded. -: nothing to compare; exact: no error at all.\n";

// Every number that is printed, and those that are only drawn.
class ledger {
 public:
  void add(const std::string& section, const std::string& data, const char* format, const std::string& granularity,
           const outcome& o) {
    const octet::statistics& s = o.statistics;
    file_.row({section, data, format, granularity, csv_number(o.least_scale), csv_number(o.most_scale),
               std::to_string(s.count), std::to_string(s.not_finite), std::to_string(s.clipped),
               std::to_string(s.flushed), csv_number(s.mean_relative_error(), 6), csv_number(s.snr_db(), 2)});
  }
  const std::string& str() const { return file_.str(); }

 private:
  csv file_{{"section", "data", "format", "granularity", "least_scale", "largest_scale", "count", "not_finite",
             "clipped", "flushed", "mean_relative_error", "snr_db"}};
};

}  // namespace lab
