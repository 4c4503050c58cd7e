// Byte pair encoding: neighbours merge into one token, best first, until no two that are left may.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lab {

// Which two tokens merge into which third, and which of several merges comes first.
class byte_pair_merges {
 public:
  // The lower rank comes first. What was said of this pair before no longer holds.
  void set(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged) {
    merges_[key(left, right)] = {rank, merged};
  }

  // Merges the pair of the lowest rank, the leftmost of several, until there is none. n tokens take n log n steps.
  void apply(std::vector<std::int32_t>& tokens) const {
    const std::size_t n = tokens.size(), none = n;
    // What is left of the tokens is a list; a token that went into its left neighbour is `gone`.
    constexpr std::int32_t gone = -1;
    std::vector<std::size_t> before(n), behind(n);
    std::vector<candidate> first;
    for (std::size_t i = 0; i < n; ++i) {
      before[i] = i == 0 ? none : i - 1;
      behind[i] = i + 1;
      if (const merge* m = i + 1 < n ? find(tokens[i], tokens[i + 1]) : nullptr) first.push_back({*m, i});
    }
    std::priority_queue<candidate> candidates(std::less<candidate>(), std::move(first));
    while (!candidates.empty()) {
      const candidate best = candidates.top();
      candidates.pop();
      const std::size_t i = best.position, right = tokens[i] == gone ? none : behind[i];
      // Since it was found, either of the two may have merged with another.
      const merge* const now = right == none ? nullptr : find(tokens[i], tokens[right]);
      if (now == nullptr || now->token != best.what.token) continue;
      tokens[i] = now->token;
      tokens[right] = gone;
      behind[i] = behind[right];
      if (behind[i] != none) before[behind[i]] = i;
      const auto consider = [&](std::size_t left) {
        if (left == none || behind[left] == none) return;
        if (const merge* m = find(tokens[left], tokens[behind[left]])) candidates.push({*m, left});
      };
      consider(before[i]);
      consider(i);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; i = behind[i]) tokens[kept++] = tokens[i];
    tokens.resize(kept);
  }

 private:
  struct merge {
    std::uint32_t rank;
    std::int32_t token;
  };
  struct candidate {
    merge what;
    std::size_t position;  // of the left one
    // The queue gives out its largest.
    friend bool operator<(const candidate& a, const candidate& b) {
      return a.what.rank != b.what.rank ? a.what.rank > b.what.rank : a.position > b.position;
    }
  };

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  const merge* find(std::int32_t left, std::int32_t right) const {
    const auto found = merges_.find(key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }

  std::unordered_map<std::uint64_t, merge> merges_;
};

}  // namespace lab
