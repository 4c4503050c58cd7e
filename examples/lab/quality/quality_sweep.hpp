// The quality sweep: a model, a text and questions, scored as they are and under each recipe.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "lab/failure.hpp"
#include "lab/model/model_folder.hpp"
#include "lab/progress.hpp"
#include "lab/recipes/observations.hpp"
#include "lab/recipes/recipe_names.hpp"
#include "lab/recipes/recipe_treatment.hpp"
#include "lab/text.hpp"
#include "lab/tokenizers/tokenizer.hpp"
#include "lab/whole_file.hpp"
#include "quality_request.hpp"
#include "questions.hpp"
#include "results.hpp"
#include "text_scores.hpp"
#include "windows.hpp"

namespace lab {

inline constexpr std::uint64_t default_context = 1024;

// A model with what it is asked, and what it answers as it is.
class quality_sweep {
 public:
  explicit quality_sweep(const quality_request& r) : request_(r) {
    stored_model stored = read_model(r.model);
    model_ = std::move(stored.model);
    const model_shape& shape = model_.config.shape;
    tokenizer_ = read_tokenizer(r.tokenizer.empty() ? stored.tokenizer : r.tokenizer, shape.vocabulary);
    choose_context();
    text_ = read_text(r.text);
    windows_ = windows_of(text_, 0);
    if (windows_.empty())
      throw failure(r.text + ": " + (context_ + (tokenizer_->bos() ? 1 : 0) < 2 ? "--context 1 leaves" : "holds") +
                    " nothing to predict");
    for (const window& w : windows_) window_sizes_.push_back(w.size() - 1);
    take_questions();
  }

  void describe() const {
    const model_shape& m = model_.config.shape;
    std::printf("%s: %s, %llu layers, hidden %llu, %llu heads (%llu of keys) of %llu, vocabulary %llu\n",
                request_.model.c_str(), m.name.c_str(), number(m.layers), number(m.hidden), number(m.heads),
                number(m.kv_heads), number(m.head_dim), number(m.vocabulary));
    std::printf("%s: %s in %s of at most %llu tokens%s\n", request_.text.c_str(),
                counted(predictions(windows_), "prediction").c_str(),
                counted(windows_.size(), request_.split.empty() ? "window" : "document").c_str(), number(context_),
                tokenizer_->bos() ? ", each behind the tokenizer's first token" : "");
    if (!questions_.empty())
      std::printf("%s: %s, chance %.1f %%\n", request_.questions.c_str(),
                  counted(questions_.size(), "question").c_str(), 100 * chance_);
    std::printf("\n");
  }

  // Forward passes over all windows, and over all questions, in tokens: for the time left.
  double text_work() const { return static_cast<double>(predictions(windows_)); }
  double question_work() const {
    double tokens = 0;
    for (const tokenized_question& q : questions_) tokens += work_of(q);
    return tokens;
  }

  result run_baseline(progress& shown) {
    const auto began = std::chrono::steady_clock::now();
    shown.begin(baseline_name);
    seen_ = std::make_unique<observations>(model_.layers.size());
    result r;
    r.recipe = baseline_name;
    scores_ = score_baseline(model_, *seen_, windows_, baseline_,
                             [&](std::size_t tokens) { shown.advance(static_cast<double>(tokens)); });
    take_scores(r, scores_);
    treatment nothing;
    answers_ = answer(model_, nothing, shown);
    take_answers(r, answers_);
    r.seconds = seconds_since(began);
    return r;
  }

  // runs: with descales times 2^(k/8) for k below it, 1 or 8.
  result run(const recipe& recipe, int runs, progress& shown) {
    const auto began = std::chrono::steady_clock::now();
    shown.begin(recipe.name);
    result r;
    r.recipe = recipe.name;
    for (int eighths = 0; eighths < runs; ++eighths) {
      losses weights;
      const transformer rounded = round_weights(model_, recipe, eighths, weights);
      recipe_treatment how(recipe, model_.config, eighths, calibration_for(recipe));
      const text_scores scores = score_recipe(rounded, how, windows_, baseline_,
                                              [&](std::size_t tokens) { shown.advance(static_cast<double>(tokens)); });
      if (eighths == 0) {
        take_scores(r, scores);
        take_losses(r, recipe, weights, how);
        take_answers(r, answer(rounded, how, shown));
        if (runs > 1) r.luck_least = r.luck_most = r.change_percent;
      } else {
        const double change = 100 * (scores.perplexity() / scores_.perplexity() - 1);
        r.luck_least = std::fmin(r.luck_least, change);
        r.luck_most = std::fmax(r.luck_most, change);
      }
    }
    r.seconds = seconds_since(began);
    return r;
  }

  const observations& seen() const { return *seen_; }

 private:
  static unsigned long long number(std::uint64_t n) { return n; }
  static double seconds_since(std::chrono::steady_clock::time_point began) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  static double work_of(const tokenized_question& q) {
    std::size_t tokens = q.shared.size();
    for (const auto& ending : q.endings) tokens += ending.tokens.size() - 1;
    return static_cast<double>(tokens);
  }

  void choose_context() {
    const std::uint64_t longest = model_.config.shape.longest_context;
    const bool documents = !request_.split.empty();
    context_ = request_.context != 0                                      ? request_.context
               : longest != 0 && (documents || longest < default_context) ? longest
                                                                          : default_context;
    if (longest != 0 && context_ > longest)
      throw usage_error("--context " + std::to_string(context_) + " is more than the model's " +
                        std::to_string(longest));
    expect_in_window(context_);
  }
  void expect_in_window(std::size_t tokens) const {
    const std::uint64_t sliding = model_.config.sliding_window;
    if (sliding != 0 && tokens > sliding)
      throw failure(request_.model + ": sliding_window is " + std::to_string(sliding) + ", shorter than the " +
                    std::to_string(tokens) + " tokens that are read together: not known here");
  }

  static std::string read_text(const std::string& path) {
    std::string text = read_whole(path, std::size_t{1} << 30, "text");
    expect_utf8(text, path);
    return text;
  }
  std::vector<window> windows_of(const std::string& of, std::size_t skipped) const {
    return cut_into_windows(*tokenizer_, of, request_.split, context_, skipped, request_.tokens);
  }

  void take_questions() {
    if (request_.questions.empty()) return;
    double choices = 0;
    for (const question& q : lab::read_questions(request_.questions, request_.first_questions)) {
      try {
        questions_.push_back(tokenize(q, *tokenizer_));
      } catch (const failure& unlike) {
        throw failure(request_.questions + ": question " + std::to_string(questions_.size() + 1) + ": " +
                      unlike.what());
      }
      choices += 1 / static_cast<double>(q.choices.size());
      std::size_t longest = 0;
      for (const auto& ending : questions_.back().endings) longest = std::max(longest, ending.tokens.size());
      longest += questions_.back().shared.size() - 1;
      expect_in_window(longest);
      const std::uint64_t most = model_.config.shape.longest_context;
      if (most != 0 && longest > most)
        throw failure(request_.questions + ": question " + std::to_string(questions_.size()) + " has " +
                      counted(longest, "token") + ", more than the model's " + std::to_string(most));
    }
    chance_ = choices / static_cast<double>(questions_.size());
  }

  // What the baseline shows on the calibration text, for the recipes with static scales; observed once a kind of K.
  const observations* calibration_for(const recipe& recipe) {
    bool any = false;
    for (const auto& part : {recipe.activations, recipe.keys, recipe.values})
      any = any || (part && part->scales == scale_source::given);
    if (!any) return nullptr;
    const key_treatment keys = recipe.of_keys();
    std::unique_ptr<observations>& seen = calibrations_[{keys.before_rope, keys.centred}];
    if (seen) return seen.get();
    const std::vector<window> windows = request_.calibration.empty() ? windows_of(text_, request_.tokens)
                                                                     : windows_of(read_text(request_.calibration), 0);
    if (request_.calibration.empty() && predictions(windows) < predictions(windows_))
      throw failure(request_.text + ": is too short for static scales: behind what is scored it has " +
                    counted(predictions(windows), "prediction") + " of " + std::to_string(predictions(windows_)) +
                    "; --calibration names another text");
    if (windows.empty()) throw failure(request_.calibration + ": holds nothing to predict");
    auto observed = std::make_unique<observations>(model_.layers.size());
    observed->keys = keys;
    pass_windows(
        model_, *observed, windows, [](std::size_t, const tensor&) {}, [](std::size_t) {});
    seen = std::move(observed);
    return seen.get();
  }

  std::vector<std::size_t> answer(const transformer& model, treatment& how, progress& shown) const {
    std::size_t passed = 0;
    return answer_questions(model, how, questions_, [&](std::size_t questions) {
      for (; questions > 0; --questions) shown.advance(work_of(questions_[passed++]));
    });
  }

  void take_scores(result& r, const text_scores& scores) const {
    const double n = static_cast<double>(scores.nll.size());
    std::vector<double> differences(scores.nll.size());
    double divergence = 0, same = 0;
    for (std::size_t i = 0; i < differences.size(); ++i) {
      differences[i] = scores.nll[i] - scores_.nll[i];
      divergence += scores.divergence[i];
      same += scores.same_top[i];
    }
    const estimate change = paired_difference(differences, window_sizes_, !request_.split.empty());
    r.perplexity = scores.perplexity();
    if (!std::isfinite(r.perplexity))
      throw failure((&scores == &scores_ ? request_.model + ": " : "") +
                    "overflows: its perplexity is no finite number");
    r.change_percent = 100 * (r.perplexity / scores_.perplexity() - 1);
    r.nll = scores.sum() / n;
    r.nll_change = change.mean;
    r.nll_change_error = change.standard_error;
    r.kl = divergence / n;
    r.top1_agreement = same / n;
    r.predictions = n;
  }

  void take_answers(result& r, const std::vector<std::size_t>& answers) const {
    if (questions_.empty()) return;
    std::size_t right = 0, lost = 0, won = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const bool now = answers[i] == questions_[i].gold, before = answers_[i] == questions_[i].gold;
      right += now ? 1 : 0;
      lost += before && !now ? 1 : 0;
      won += now && !before ? 1 : 0;
    }
    const interval interval = wilson(right, answers.size());
    r.questions = static_cast<double>(answers.size());
    r.chance = chance_;
    r.accuracy = share(right, answers.size());
    r.accuracy_least = interval.least;
    r.accuracy_most = interval.most;
    r.right_to_wrong = static_cast<double>(lost);
    r.wrong_to_right = static_cast<double>(won);
    r.mcnemar_p = mcnemar(lost, won);
  }

  static void take_losses(result& r, const recipe& recipe, const losses& weights, const recipe_treatment& how) {
    if (recipe.weights) {
      r.weights_flushed = share(weights.flushed, weights.count);
      r.weights_clipped = share(weights.clipped, weights.count);
    }
    for (std::size_t i = 0; i < sites; ++i) {
      const losses& lost = how.lost(static_cast<site>(i));
      r.flushed[i] = share(lost.flushed, lost.count);
      r.clipped[i] = share(lost.clipped, lost.count);
    }
  }

  const quality_request& request_;
  transformer model_;
  std::unique_ptr<tokenizer> tokenizer_;
  std::uint64_t context_ = 0;
  std::string text_;
  std::vector<window> windows_;
  std::vector<std::size_t> window_sizes_;
  std::vector<tokenized_question> questions_;
  double chance_ = 0;
  std::unique_ptr<observations> seen_;
  std::map<std::pair<bool, bool>, std::unique_ptr<observations>> calibrations_;
  text_baseline baseline_;
  text_scores scores_;
  std::vector<std::size_t> answers_;
};

}  // namespace lab
