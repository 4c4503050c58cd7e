// Quantizes again on the host what the device quantized, and notes what differs and what was lost.
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bf16.cuh"
#include "device.cuh"
#include "octet/bulk.hpp"
#include "octet/cuda/paged.cuh"
#include "octet/quantize.hpp"

namespace toy {

// What was seen of one tensor, in all the passes it took part in.
struct sighting {
  std::string name;
  float amax = 0, least_descale = INFINITY, greatest_descale = 0;
  octet::statistics lost;
  std::size_t differing = 0;  // codes and descales that are not the host's
};

class witness {
  const stream& on_;
  std::vector<sighting> seen_;

  sighting& of(const std::string& name) {
    for (sighting& s : seen_)
      if (s.name == name) return s;
    seen_.push_back({});
    seen_.back().name = name;
    return seen_.back();
  }

 public:
  explicit witness(const stream& on) : on_(on) {}
  const std::vector<sighting>& seen() const { return seen_; }

  // A tensor whose descales were found on the device.
  template <class Granularity>
  void found(const std::string& name, const Granularity& granularity, const octet::scale_rule& rule, const bf16* x,
             std::size_t rows, std::size_t cols, const octet::e4m3* codes, const octet::descale* descales) {
    const std::size_t count = octet::descale_count(granularity, rows, cols);
    const std::vector<octet::descale> theirs = on_.download(descales, 1, count, count);
    std::vector<octet::descale> expected(count);
    std::vector<octet::e4m3> expected_codes(rows * cols);
    const std::vector<bf16> values = on_.download(x, rows, cols, cols);
    octet::quantize_into(octet::matrix_view<const bf16>(values.data(), rows, cols), granularity, rule,
                         octet::matrix_view<octet::e4m3>(expected_codes.data(), rows, cols), expected.data());
    for (std::size_t i = 0; i < count; ++i) of(name).differing += theirs[i].value() != expected[i].value() ? 1 : 0;
    note(name, granularity, values, rows, cols, on_.download(codes, 1, rows * cols, rows * cols), expected_codes,
         theirs);
  }

  // Keys or values, scaled by descales that were given, in the slots of a cache [slots, cols]; some are in none (-1).
  void cached(const std::string& name, const octet::cuda::per_head& heads, const std::vector<octet::descale>& descales,
              const bf16* x, std::size_t rows, std::size_t cols, std::size_t row_stride,
              const memory<octet::e4m3>& cache, const std::vector<std::vector<std::int64_t>>& slots) {
    const std::vector<octet::e4m3> codes = on_.download(cache);
    const std::vector<bf16> values = on_.download(x, rows, cols, row_stride);
    std::vector<octet::e4m3> expected(rows * cols);
    octet::quantize_into(octet::matrix_view<const bf16>(values.data(), rows, cols), heads, descales.data(),
                         octet::matrix_view<octet::e4m3>(expected.data(), rows, cols));
    for (std::size_t i = 0; i < slots.size(); ++i) {
      std::vector<octet::e4m3> theirs = expected;
      for (std::size_t row = 0; row < rows; ++row)
        if (slots[i][row] >= 0)
          std::memcpy(static_cast<void*>(&theirs[row * cols]), &codes[static_cast<std::size_t>(slots[i][row]) * cols],
                      cols);
      if (i == 0)
        note(name, heads, values, rows, cols, theirs, expected, descales);
      else
        of(name).differing += differing(theirs, expected);
    }
  }

 private:
  static std::size_t differing(const std::vector<octet::e4m3>& a, const std::vector<octet::e4m3>& b) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < a.size(); ++i) n += a[i].bits() != b[i].bits() ? 1 : 0;
    return n;
  }

  template <class Granularity>
  void note(const std::string& name, const Granularity& granularity, const std::vector<bf16>& values, std::size_t rows,
            std::size_t cols, const std::vector<octet::e4m3>& codes, const std::vector<octet::e4m3>& expected,
            const std::vector<octet::descale>& descales) {
    sighting& s = of(name);
    s.differing += differing(codes, expected);
    s.amax = std::fmax(s.amax, octet::amax(values.data(), values.size()));
    for (const octet::descale d : descales) {
      s.least_descale = std::fmin(s.least_descale, d.value());
      s.greatest_descale = std::fmax(s.greatest_descale, d.value());
    }
    s.lost += octet::measure(octet::matrix_view<const bf16>(values.data(), rows, cols),
                             octet::as_quantized(octet::matrix_view<const octet::e4m3>(codes.data(), rows, cols),
                                                 descales.data(), granularity));
  }
};

}  // namespace toy
