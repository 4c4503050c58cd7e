// Multiple choice: questions from a JSONL file, their prompts, and the choice that a model finds likeliest.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lab/json_file.hpp"
#include "lab/model/transformer.hpp"
#include "lab/tokenizers/tokenizer.hpp"
#include "lab/tokenizers/unicode.hpp"
#include "lab/whole_file.hpp"
#include "text_scores.hpp"

namespace lab {

// A question as the file has it, made a prompt and what may follow.
struct question {
  std::string prompt;
  std::vector<std::string> choices;  // what follows the prompt, blank included
  std::size_t gold = 0;
  bool by_letter = false;  // the answer is one token, " A" to ...; else the text of a choice, by its bytes
};

// One JSON object a line, with choices and gold beside one of two fields. question: scored by the letter of the answer,
// behind an introduction that names the subject where there is one. query: scored by the text of the answer, behind
// "Answer:" where the query begins with "Question:", else as what comes next.
inline question read_question(const std::string& where, const nlohmann::json& line) {
  const auto text = [&](const nlohmann::json& value, const std::string& field) {
    if (!value.is_string()) throw failure(where + ": " + field + " is no string");
    return value.get<std::string>();
  };
  if (!line.is_object()) throw failure(where + ": is no JSON object");
  if (!line.contains("choices") || !line.at("choices").is_array() || line.at("choices").size() < 2)
    throw failure(where + ": choices is no list of two or more");
  std::vector<std::string> choices;
  for (const nlohmann::json& choice : line.at("choices")) choices.push_back(text(choice, "one of choices"));
  for (const std::string& choice : choices)
    if (choice.empty()) throw failure(where + ": choices holds an empty text");
  question q;
  if (!line.contains("gold") || !line.at("gold").is_number_unsigned() ||
      line.at("gold").get<std::uint64_t>() >= choices.size())
    throw failure(where + ": gold is not the number of a choice, counted from 0");
  q.gold = line.at("gold").get<std::size_t>();
  if (line.contains("question")) {
    if (choices.size() > 26) throw failure(where + ": choices are more than there are letters");
    q.by_letter = true;
    std::string subject;
    if (line.contains("subject")) subject = " about " + text(line.at("subject"), "subject");
    std::replace(subject.begin(), subject.end(), '_', ' ');
    q.prompt = "The following are multiple choice questions (with answers)" + subject + ".\n\n" +
               text(line.at("question"), "question") + "\n";
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const std::string letter(1, static_cast<char>('A' + i));
      q.prompt += letter + ". " + choices[i] + "\n";
      q.choices.push_back(" " + letter);
    }
    q.prompt += "Answer:";
  } else {
    if (!line.contains("query")) throw failure(where + ": has neither question nor query");
    q.prompt = text(line.at("query"), "query");
    if (q.prompt.compare(0, 9, "Question:") == 0) q.prompt += "\nAnswer:";
    for (const std::string& choice : choices) q.choices.push_back(" " + choice);
  }
  if (q.prompt.empty()) throw failure(where + ": query is empty");
  return q;
}

inline std::vector<question> read_questions(const std::string& path, std::size_t limit) {
  std::istringstream file(read_whole(path, std::size_t{1} << 30, "file of questions"));
  std::vector<question> questions;
  std::string line;
  for (std::size_t number = 1; (limit == 0 || questions.size() < limit) && std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = path + ": line " + std::to_string(number);
    expect_utf8(line, where);
    nlohmann::json object;
    try {
      object = nlohmann::json::parse(line);
    } catch (const nlohmann::json::exception&) {
      throw failure(where + ": is no JSON");
    }
    questions.push_back(read_question(where, object));
  }
  if (questions.empty()) throw failure(path + ": holds no question");
  return questions;
}

// A question in tokens: what all choices share is read once, then what each adds.
struct tokenized_question {
  std::vector<std::int32_t> shared;
  struct ending {
    std::vector<std::int32_t> tokens;  // behind the shared ones
    std::size_t first_scored;          // of these tokens
    double bytes;
  };
  std::vector<ending> endings;  // of a question by letter, one token each
  std::size_t gold = 0;
  bool by_letter = false;
};

inline tokenized_question tokenize(const question& q, const tokenizer& words) {
  const auto tokens_of = [&](const std::string& text) {
    std::vector<std::int32_t> ids = words.encode(text);
    if (words.bos()) ids.insert(ids.begin(), *words.bos());
    return ids;
  };
  tokenized_question t;
  t.gold = q.gold;
  t.by_letter = q.by_letter;
  const std::vector<std::int32_t> prompt = tokens_of(q.prompt);
  if (q.by_letter) {
    t.shared = prompt;
    for (const std::string& choice : q.choices) {
      const std::vector<std::int32_t> letter = words.encode(choice);
      if (letter.size() != 1)
        throw failure("tokenizer: '" + choice + "' is " + std::to_string(letter.size()) +
                      " tokens, so that questions cannot be scored by letter");
      t.endings.push_back({letter, 0, 1});
    }
    return t;
  }
  // The choice begins with the first token that the prompt alone does not have, since the blank between them may belong
  // to either.
  std::vector<std::vector<std::int32_t>> all;
  std::vector<std::size_t> begins;
  std::size_t shared = prompt.size();
  for (const std::string& choice : q.choices) {
    all.push_back(tokens_of(q.prompt + choice));
    const std::vector<std::int32_t>& ids = all.back();
    const std::size_t shorter = std::min(ids.size(), prompt.size());
    const auto end = std::mismatch(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shorter), prompt.begin());
    begins.push_back(static_cast<std::size_t>(end.first - ids.begin()));
    if (begins.back() == ids.size()) throw failure("tokenizer: '" + choice + "' adds no token to '" + q.prompt + "'");
    shared = std::min(shared, begins.back());
  }
  if (shared == 0) throw failure("tokenizer: '" + q.prompt + "' begins with another token before each of its choices");
  t.shared.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(shared));
  for (std::size_t i = 0; i < all.size(); ++i)
    t.endings.push_back({{all[i].begin() + static_cast<std::ptrdiff_t>(shared), all[i].end()},
                         begins[i] - shared,
                         static_cast<double>(q.choices[i].size() - 1)});  // without the blank before it
  return t;
}

// A row of hidden values, and the tokens whose log-probability is wanted there.
struct wanted_row {
  const tensor* hidden;
  Eigen::Index row;
  std::vector<std::pair<std::int32_t, double*>> tokens;  // log-probabilities are added to the sums
};
inline void add_log_probabilities(const transformer& model, const std::vector<wanted_row>& wanted) {
  tensor hidden(index(wanted.size()), model.head->cols());
  for (std::size_t i = 0; i < wanted.size(); ++i) hidden.row(index(i)) = wanted[i].hidden->row(wanted[i].row);
  std::vector<std::vector<double>> found(wanted.size());
  for_each_logits(*model.head, hidden, [&](std::size_t r, const auto& logits) {
    const double log_sum = scale_of_logits(logits).log_sum;
    for (const auto& token : wanted[r].tokens) found[r].push_back(static_cast<double>(logits(token.first)) - log_sum);
  });
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t k = 0; k < found[i].size(); ++k) *wanted[i].tokens[k].second += found[i][k];
}

// Questions that pass the model together: what the choices of each share in one pass, then all endings in another.
class question_group {
 public:
  question_group(const tokenized_question* questions, std::size_t count)
      : questions_(questions), caches_(count), sums_(count) {}

  std::vector<std::size_t> answers(const transformer& model, treatment& how) {
    std::vector<passage> passages;
    for (std::size_t k = 0; k < caches_.size(); ++k)
      passages.push_back({questions_[k].shared.data(), questions_[k].shared.size(), &caches_[k]});
    shared_ = forward(model, how, passages);
    want();
    endings_ = behind_.empty() ? tensor() : forward(model, how, behind_);
    add_log_probabilities(model, wanted_);
    std::vector<std::size_t> chosen;
    for (std::size_t k = 0; k < sums_.size(); ++k) {
      for (std::size_t c = 0; c < sums_[k].size(); ++c) sums_[k][c] /= questions_[k].endings[c].bytes;
      chosen.push_back(static_cast<std::size_t>(std::max_element(sums_[k].begin(), sums_[k].end()) - sums_[k].begin()));
    }
    return chosen;
  }

 private:
  // Lists the passages of the endings, and where the log-probability of which token is wanted.
  void want() {
    Eigen::Index last_shared = -1, next_row = 0;
    for (std::size_t k = 0; k < sums_.size(); ++k) {
      const tokenized_question& q = questions_[k];
      last_shared += index(q.shared.size());
      sums_[k].resize(q.endings.size());
      wanted_row first{&shared_, last_shared, {}};
      for (std::size_t c = 0; c < q.endings.size(); ++c) {
        const tokenized_question::ending& e = q.endings[c];
        if (e.first_scored == 0) first.tokens.push_back({e.tokens[0], &sums_[k][c]});
        for (std::size_t t = std::max<std::size_t>(e.first_scored, 1); t < e.tokens.size(); ++t)
          wanted_.push_back({&endings_, next_row + index(t) - 1, {{e.tokens[t], &sums_[k][c]}}});
        if (e.tokens.size() == 1) continue;
        copies_.push_back(caches_[k]);
        behind_.push_back({e.tokens.data(), e.tokens.size() - 1, &copies_.back()});
        next_row += index(e.tokens.size()) - 1;
      }
      if (!first.tokens.empty()) wanted_.push_back(std::move(first));
    }
  }

  const tokenized_question* questions_;
  std::vector<kv_cache> caches_;
  std::list<kv_cache> copies_;  // a list: passages point into it
  std::vector<std::vector<double>> sums_;
  std::vector<passage> behind_;
  std::vector<wanted_row> wanted_;
  tensor shared_, endings_;
};

// The choice of the model for each question: the likeliest letter, or the text with the largest sum of log-probabilities
// over bytes; the first of equals. `pause(questions)` is called after each group.
inline std::vector<std::size_t> answer_questions(const transformer& model, treatment& how,
                                                 const std::vector<tokenized_question>& questions,
                                                 const std::function<void(std::size_t)>& pause) {
  constexpr std::size_t tokens_a_group = 512;
  std::vector<std::size_t> answers;
  for (std::size_t i = 0, end = 0; i < questions.size(); i = end) {
    for (std::size_t tokens = 0; end < questions.size() && (end == i || tokens < tokens_a_group); ++end)
      tokens += questions[end].shared.size();
    const std::vector<std::size_t> chosen = question_group(&questions[i], end - i).answers(model, how);
    answers.insert(answers.end(), chosen.begin(), chosen.end());
    pause(end - i);
  }
  return answers;
}

}  // namespace lab
