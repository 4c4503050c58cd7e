// Whether two runs differ: paired differences with a standard error, intervals of shares, and a test of flips.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace lab {

struct estimate {
  double mean = 0, standard_error = 0;
};

// The mean of the differences, and its standard error from sums over blocks, since neighbours are not independent.
// document_sizes: how many differences each document has, in order. Blocks are documents where there are 20 or more,
// else runs of 64 within a document.
inline estimate paired_difference(const std::vector<double>& differences,
                                  const std::vector<std::size_t>& document_sizes) {
  constexpr std::size_t enough_documents = 20, block_size = 64;
  struct block {
    double sum, count;
  };
  std::vector<block> blocks;
  std::size_t first = 0;
  for (const std::size_t size : document_sizes) {
    const std::size_t step = document_sizes.size() >= enough_documents ? std::max<std::size_t>(size, 1) : block_size;
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
  const double z = 1.959963984540054, n = static_cast<double>(count), share = static_cast<double>(part) / n;
  const double centre = share + z * z / (2 * n);
  const double half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
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
