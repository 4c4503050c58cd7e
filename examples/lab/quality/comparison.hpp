// Whether two runs differ: paired differences with a standard error, intervals of shares, and a test of flips.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lab {

// NaN where nothing was counted.
inline double share(std::uint64_t part, std::uint64_t count) {
  return count == 0 ? std::nan("") : static_cast<double>(part) / static_cast<double>(count);
}

struct estimate {
  double mean = 0, standard_error = 0;
};

// The mean of the differences, and its standard error from sums over blocks, since neighbours are not independent.
// sizes: how many differences each window of the text has, in order. Blocks are windows where these are documents and
// there are 20 or more, else runs of 64 within a window.
inline estimate paired_difference(const std::vector<double>& differences, const std::vector<std::size_t>& sizes,
                                  bool are_documents) {
  constexpr std::size_t enough_documents = 20, block_size = 64;
  const bool by_document = are_documents && sizes.size() >= enough_documents;
  struct block {
    double sum, count;
  };
  std::vector<block> blocks;
  std::size_t first = 0;
  for (const std::size_t size : sizes) {
    const std::size_t step = by_document ? std::max<std::size_t>(size, 1) : block_size;
    for (std::size_t i = 0; i < size; i += step) {
      const std::size_t n = std::min(step, size - i);
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += differences[first + i + k];
      blocks.push_back({sum, static_cast<double>(n)});
    }
    first += size;
  }
  double sum = 0, count = 0;
  for (const block& b : blocks) {
    sum += b.sum;
    count += b.count;
  }
  estimate e;
  e.mean = sum / count;
  // The mean is a ratio of two sums over blocks; to first order it varies as the sum of what each block deviates.
  double squares = 0;
  for (const block& b : blocks) squares += (b.sum - b.count * e.mean) * (b.sum - b.count * e.mean);
  const double n = static_cast<double>(blocks.size());
  e.standard_error = n > 1 ? std::sqrt(n / (n - 1) * squares) / count : std::nan("");
  return e;
}

struct interval {
  double least, most;
};

// Wilson's 95 % interval of a share.
inline interval wilson(std::size_t part, std::size_t count) {
  const double z = 1.959963984540054, n = static_cast<double>(count), p = share(part, count);
  const double centre = p + z * z / (2 * n);
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {(centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)};
}

// McNemar's exact test: the probability of flips at least as one-sided as these if both directions were equally likely.
inline double mcnemar(std::size_t one_way, std::size_t other_way) {
  const std::size_t n = one_way + other_way, fewer = std::min(one_way, other_way);
  double tail = 0;
  for (std::size_t k = 0; k <= fewer; ++k)
    tail += std::exp(std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(k) + 1) -
                     std::lgamma(static_cast<double>(n - k) + 1) - static_cast<double>(n) * std::log(2.0));
  return std::min(1.0, 2 * tail);
}

}  // namespace lab
