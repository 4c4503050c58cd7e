// How well a model predicts a text: windows of tokens, log-likelihoods, and how far a recipe moves the predictions.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lab/model/forward.hpp"
#include "lab/model/tensor.hpp"
#include "lab/model/transformer.hpp"
#include "lab/parallel.hpp"

namespace lab {

// Tokens that are read together; every one but the first is predicted from those before it.
using window = std::vector<std::int32_t>;

inline std::size_t predictions(const std::vector<window>& windows) {
  std::size_t n = 0;
  for (const window& w : windows) n += w.size() - 1;
  return n;
}

// The sum of an expression of floats: in float over short runs, which Eigen has instructions for, and these in double.
template <class Expression>
double sum_of(const Expression& values) {
  constexpr Eigen::Index run = 1024;
  double sum = 0;
  for (Eigen::Index i = 0; i < values.size(); i += run)
    sum += static_cast<double>(values.segment(i, std::min(run, values.size() - i)).sum());
  return sum;
}

// Logits of one position: the first of the largest, and the logarithm of the sum of exp.
struct softmax_scale {
  Eigen::Index top = 0;
  double log_sum = 0;
};
template <class Row>
softmax_scale scale_of_logits(const Row& logits) {
  softmax_scale s;
  const float largest = logits.maxCoeff();
  while (logits(s.top) < largest) ++s.top;
  s.log_sum = static_cast<double>(largest) + std::log(sum_of((logits.array() - largest).exp()));
  return s;
}

// Logits are computed for so many positions at a time, each thread's in memory of its own that it keeps.
inline constexpr std::size_t positions_a_slice = 128;

// Calls body(row, logits) for each row of hidden values. Several threads call at once.
template <class Body>
void for_each_logits(const tensor& head, const tensor& hidden, const Body& body) {
  for_each_slice(rows(hidden), positions_a_slice, [&](std::size_t first, std::size_t last) {
    thread_local tensor logits;
    logits.resize(index(last - first), head.rows());
    logits.noalias() = hidden.middleRows(index(first), index(last - first)) * head.transpose();
    for (std::size_t r = first; r < last; ++r) body(r, logits.row(index(r - first)));
  });
}

// What one run over the windows gives, a number for each prediction in their order.
struct text_scores {
  std::vector<double> nll;         // negative log-likelihood in nats
  std::vector<double> divergence;  // KL(baseline || this) of the predicted distributions
  std::vector<char> same_top;      // the likeliest token is the baseline's

  double sum() const {
    double s = 0;
    for (const double x : nll) s += x;
    return s;
  }
  double perplexity() const { return std::exp(sum() / static_cast<double>(nll.size())); }
};

// The baseline's hidden values, from which its logits are computed again where a recipe's are compared with them: they
// take a fraction of the memory that the logits would.
struct text_baseline {
  const tensor* head;
  tensor hidden;  // [predictions, hidden]
};

// Passes the windows through a model in groups. `each(first, hidden)` gets the hidden values that predict, those of a
// group at a time, with the number of the first. `pause(tokens)` is called after each group.
inline void pass_windows(const transformer& model, treatment& how, const std::vector<window>& windows,
                         const std::function<void(std::size_t, const tensor&)>& each,
                         const std::function<void(std::size_t)>& pause) {
  constexpr std::size_t tokens_a_group = 1024;  // small windows fill the threads together
  std::size_t first = 0;
  for (std::size_t i = 0; i < windows.size();) {
    std::size_t end = i, tokens = 0;
    while (end < windows.size() && (end == i || tokens + windows[end].size() - 1 <= tokens_a_group))
      tokens += windows[end++].size() - 1;
    std::vector<kv_cache> caches(end - i);
    std::vector<passage> passages;
    for (std::size_t k = i; k < end; ++k)
      passages.push_back({windows[k].data(), windows[k].size() - 1, &caches[k - i]});
    each(first, forward(model, how, passages));
    first += tokens;
    i = end;
    pause(tokens);
  }
}

// The token that each prediction should give.
inline std::vector<std::int32_t> targets_of(const std::vector<window>& windows) {
  std::vector<std::int32_t> targets;
  for (const window& w : windows) targets.insert(targets.end(), w.begin() + 1, w.end());
  return targets;
}

// Without a recipe: fills `baseline`.
inline text_scores score_baseline(const transformer& model, treatment& how, const std::vector<window>& windows,
                                  text_baseline& baseline, const std::function<void(std::size_t)>& pause) {
  const std::vector<std::int32_t> targets = targets_of(windows);
  text_scores scores;
  scores.nll.resize(targets.size());
  scores.divergence.resize(targets.size());
  scores.same_top.assign(targets.size(), 1);
  baseline.head = model.head.get();
  baseline.hidden.resize(index(targets.size()), model.head->cols());
  pass_windows(
      model, how, windows,
      [&](std::size_t first, const tensor& hidden) {
        baseline.hidden.middleRows(index(first), hidden.rows()) = hidden;
        for_each_logits(*model.head, hidden, [&](std::size_t r, const auto& logits) {
          const double logit = static_cast<double>(logits(targets[first + r]));
          scores.nll[first + r] = scale_of_logits(logits).log_sum - logit;
        });
      },
      pause);
  return scores;
}

inline text_scores score_recipe(const transformer& model, treatment& how, const std::vector<window>& windows,
                                const text_baseline& baseline, const std::function<void(std::size_t)>& pause) {
  const std::vector<std::int32_t> targets = targets_of(windows);
  text_scores scores;
  scores.nll.resize(targets.size());
  scores.divergence.resize(targets.size());
  scores.same_top.resize(targets.size());
  pass_windows(
      model, how, windows,
      [&](std::size_t first, const tensor& hidden) {
        for_each_slice(rows(hidden), positions_a_slice, [&](std::size_t from, std::size_t to) {
          const Eigen::Index n = index(to - from);
          thread_local tensor theirs, ours;
          theirs.resize(n, baseline.head->rows());
          ours.resize(n, model.head->rows());
          theirs.noalias() = baseline.hidden.middleRows(index(first + from), n) * baseline.head->transpose();
          ours.noalias() = hidden.middleRows(index(from), n) * model.head->transpose();
          for (Eigen::Index r = 0; r < n; ++r) {
            const std::size_t i = first + from + static_cast<std::size_t>(r);
            const softmax_scale base = scale_of_logits(theirs.row(r)), own = scale_of_logits(ours.row(r));
            scores.nll[i] = own.log_sum - static_cast<double>(ours(r, targets[i]));
            scores.same_top[i] = base.top == own.top ? 1 : 0;
            // sum of p (log p - log q), log p = a - base.log_sum, log q = b - own.log_sum.
            const auto a = theirs.row(r).array(), b = ours.row(r).array();
            const auto p = (a - static_cast<float>(base.log_sum)).exp();
            scores.divergence[i] = sum_of(p * (a - b)) - (base.log_sum - own.log_sum);
          }
        });
      },
      pause);
  return scores;
}

}  // namespace lab
