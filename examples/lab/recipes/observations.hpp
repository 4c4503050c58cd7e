// What passes the places where a recipe would round: magnitudes by place, and each channel's mean and deviation.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "lab/model/forward.hpp"
#include "octet/float_traits.hpp"
#include "rounding.hpp"

namespace lab {

// Magnitudes counted in 128 bins a binade.
class magnitudes {
 public:
  void add(float x) { ++counts_[octet::float_traits<float>::to_bits(std::fabs(x)) >> 16]; }
  std::uint64_t count() const { return below(counts_.size()); }
  // Half of the values are below; the middle of a bin, so within 0.4 %, but 0 below 2^-133.
  double median() const {
    const std::uint64_t half = (count() + 1) / 2;
    std::uint64_t passed = 0;
    std::size_t bin = 0;
    while (bin < counts_.size() && (passed += counts_[bin]) < half) ++bin;
    return bin == 0 ? 0 : (edge(bin) + edge(bin + 1)) / 2;
  }
  // Values below 2^-9, the least that E4M3 has.
  std::uint64_t below_e4m3() const { return below((127 - 9) << 7); }

 private:
  static double edge(std::size_t bin) {
    return static_cast<double>(octet::float_traits<float>::from_bits(static_cast<std::uint32_t>(bin) << 16));
  }
  std::uint64_t below(std::size_t bin) const {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < bin; ++i) n += counts_[i];
    return n;
  }
  std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(1 << 15);
};

class observations : public treatment {
 public:
  struct channel {
    float amax = 0;
    double sum = 0, squares = 0;
  };

  explicit observations(std::size_t layers) : of_(sites), magnitudes_(sites) {
    for (auto& by_layer : of_) by_layer.resize(layers + 1);
  }

  void round(site where, std::size_t layer, octet::matrix_view<float> values) override {
    if (where == site::softmax) return;
    const std::lock_guard<std::mutex> lock(adding_);
    place& p = of_[static_cast<std::size_t>(where)][layer];
    magnitudes& m = magnitudes_[static_cast<std::size_t>(where)];
    p.channels.resize(values.cols);
    p.tokens += values.rows;
    for (std::size_t r = 0; r < values.rows; ++r)
      for (std::size_t c = 0; c < values.cols; ++c) {
        const float x = values(r, c);
        channel& observed = p.channels[c];
        observed.amax = std::max(observed.amax, std::fabs(x));
        observed.sum += static_cast<double>(x);
        observed.squares += static_cast<double>(x) * static_cast<double>(x);
        m.add(x);
      }
  }

  // The largest magnitude of each tile of a shape that has all rows.
  std::vector<float> amaxes(site where, std::size_t layer, const tile& shape) const {
    const std::vector<channel>& channels = at(where, layer);
    const octet::cut cut = shape.tiles(1, channels.size()).cols;
    std::vector<float> found(cut.count(channels.size()));
    for (std::size_t c = 0; c < channels.size(); ++c)
      found[cut.tile(c)] = std::max(found[cut.tile(c)], channels[c].amax);
    return found;
  }

  const std::vector<channel>& at(site where, std::size_t layer) const {
    return of_[static_cast<std::size_t>(where)][layer].channels;
  }
  std::size_t layers() const { return of_[0].size() - 1; }
  double mean(site where, std::size_t layer, std::size_t c) const {
    const place& p = of_[static_cast<std::size_t>(where)][layer];
    return p.channels[c].sum / static_cast<double>(p.tokens);
  }
  double deviation(site where, std::size_t layer, std::size_t c) const {
    const place& p = of_[static_cast<std::size_t>(where)][layer];
    const double m = mean(where, layer, c), variance = p.channels[c].squares / static_cast<double>(p.tokens) - m * m;
    return variance > 0 ? std::sqrt(variance) : 0;
  }
  const magnitudes& of(site where) const { return magnitudes_[static_cast<std::size_t>(where)]; }
  float amax(site where) const {
    float largest = 0;
    for (const place& p : of_[static_cast<std::size_t>(where)])
      for (const channel& c : p.channels) largest = std::max(largest, c.amax);
    return largest;
  }

 private:
  struct place {
    std::size_t tokens = 0;
    std::vector<channel> channels;
  };
  std::vector<std::vector<place>> of_;  // by site, then by layer
  std::vector<magnitudes> magnitudes_;
  std::mutex adding_;
};

}  // namespace lab
