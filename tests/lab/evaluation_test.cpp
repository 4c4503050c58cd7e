// Windows, questions and results: what a model is asked, and the file that keeps what it answered.
// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "lab/quality/questions.hpp"
#include "lab/quality/results.hpp"
#include "lab/quality/text_scores.hpp"
#include "lab/quality/windows.hpp"
#include "lab/recipes/observations.hpp"
#include "lab/tokenizers/tokenizer.hpp"
#include "temporary_folder.hpp"

namespace {

using lab::window;

// Letters a to j are tokens 0 to 9, A to C 10 to 12, a blank 13, a new line 14, ' A' to ' C' 15 to 17, '?', ':', '.'; 21
// begins a text where asked.
std::unique_ptr<lab::tokenizer> letters(const temporary_folder& folder, bool begins) {
  std::string vocabulary;
  const char* const tokens[] = {"a", "b", "c", "d", "e",  "f",  "g",  "h", "i", "j", "A",
                                "B", "C", "Ġ", "Ċ", "ĠA", "ĠB", "ĠC", "?", ":", "."};
  int id = 0;
  for (const char* token : tokens)
    vocabulary += (id == 0 ? "\"" : ", \"") + std::string(token) + "\": " + std::to_string(id), ++id;
  const std::string processor =
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
          {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [21],
          "tokens": ["<s>"]}}})";
  const std::string path = folder.path() + "/tokenizer.json";
  std::ofstream(path) << R"({"version": "1.0", "added_tokens": [{"id": 21, "content": "<s>", "single_word": false,
      "lstrip": false, "rstrip": false, "normalized": false, "special": true}], "normalizer": null,
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
      "post_processor": )"
                      << (begins ? processor : "null")
                      << R"(, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {)" << vocabulary
                      << R"(}, "merges": ["Ġ A", "Ġ B", "Ġ C"]}})";
  return lab::read_tokenizer(path, 22);
}

std::string complaint(const std::string& file) {
  const temporary_folder folder;
  const std::string path = folder.path() + "/q.jsonl";
  std::ofstream(path, std::ios::binary) << file;
  try {
    lab::read_questions(path, 0);
  } catch (const lab::failure& failure) {
    return lab::replaced(failure.what(), path, "FILE");
  }
  return "nothing";
}

}  // namespace

TEST_CASE("A text is cut into windows that do not overlap; what is over makes a short one") {
  const temporary_folder folder;
  const auto plain = letters(folder, false);
  using windows = std::vector<window>;
  CHECK(lab::cut_into_windows(*plain, "abcdefghij", "", 4, 0, 9) == windows{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(lab::cut_into_windows(*plain, "abcdefghij", "", 4, 0, 100) == windows{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  CHECK(lab::cut_into_windows(*plain, "abcdefghij", "", 4, 5, 5) == windows{{5, 6, 7, 8}});
  // Where texts begin with a token, every other one is predicted.
  const auto begins = letters(folder, true);
  CHECK(lab::cut_into_windows(*begins, "abcdefghij", "", 4, 0, 9) ==
        windows{{21, 0, 1, 2, 3}, {21, 4, 5, 6, 7}, {21, 8}});
  CHECK(lab::predictions({{21, 0, 1}, {0, 1}}) == 3);
}

TEST_CASE("Documents are windows of their own, cut at the context and at the number of predictions") {
  const temporary_folder folder;
  const auto begins = letters(folder, true);
  using windows = std::vector<window>;
  const std::string text = "abc\n#\n\n#def\nghij#";
  CHECK(lab::documents_of(text, "#") == std::vector<std::string>{"abc", "def\nghij"});
  CHECK(lab::documents_of("ab\nc\n \n\nd\n", lab::blank_line) == std::vector<std::string>{"ab\nc", "d"});
  CHECK(lab::cut_into_windows(*begins, text, "#", 6, 0, 100) == windows{{21, 0, 1, 2}, {21, 3, 4, 5, 14, 6}});
  CHECK(lab::cut_into_windows(*begins, text, "#", 6, 0, 5) == windows{{21, 0, 1, 2}, {21, 3, 4}});
  CHECK(lab::cut_into_windows(*begins, text, "#", 6, 3, 5) == windows{{21, 3, 4, 5, 14, 6}});
}

TEST_CASE("Questions are asked by letter, by answer, or as what comes next") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/q.jsonl";
  std::ofstream(path) << R"({"question": "What?", "subject": "a_b", "choices": ["x", "y"], "gold": 1})"
                      << "\n\n"
                      << R"({"query": "Question: What?", "choices": ["x", "y"], "gold": 0})"
                      << "\n"
                      << R"({"query": "Once.", "choices": ["x", "y", "z"], "gold": 2})"
                      << "\n";
  const std::vector<lab::question> q = lab::read_questions(path, 0);
  REQUIRE(q.size() == 3);
  CHECK(q[0].prompt ==
        "The following are multiple choice questions (with answers) about a b.\n\nWhat?\nA. x\nB. y\nAnswer:");
  CHECK(q[0].choices == std::vector<std::string>{" A", " B"});
  CHECK((q[0].by_letter && q[0].gold == 1));
  CHECK(q[1].prompt == "Question: What?\nAnswer:");
  CHECK(q[1].choices == std::vector<std::string>{" x", " y"});
  CHECK(q[2].prompt == "Once.");
  CHECK_FALSE(q[2].by_letter);
  CHECK(lab::read_questions(path, 2).size() == 2);
}

TEST_CASE("A question that is none is refused, and the line named") {
  CHECK(complaint("") == "FILE: is empty");
  CHECK(complaint("{]") == "FILE: line 1: is no JSON");
  CHECK(complaint("\n[]") == "FILE: line 2: is no JSON object");
  CHECK(complaint(R"({"query": "x"})") == "FILE: line 1: choices is no list of two or more");
  CHECK(complaint(R"({"query": "x", "choices": [], "gold": 0})") == "FILE: line 1: choices is no list of two or more");
  CHECK(complaint(R"({"query": "x", "choices": ["a", 2], "gold": 0})") == "FILE: line 1: one of choices is no string");
  CHECK(complaint(R"({"query": "x", "choices": ["a", ""], "gold": 0})") == "FILE: line 1: choices holds an empty text");
  CHECK(complaint(R"({"query": "x", "choices": ["a", "b"], "gold": 2})") ==
        "FILE: line 1: gold is not the number of a choice, counted from 0");
  CHECK(complaint(R"({"query": "x", "choices": ["a", "b"]})") ==
        "FILE: line 1: gold is not the number of a choice, counted from 0");
  CHECK(complaint(R"({"choices": ["a", "b"], "gold": 0})") == "FILE: line 1: has neither question nor query");
  CHECK(complaint("{\"query\": \"\xFF\", \"choices\": [\"a\", \"b\"], \"gold\": 0}") ==
        "FILE: line 1: is no UTF-8 from byte 12 on");
}

TEST_CASE("What all choices share is read once, and only the choice is scored") {
  const temporary_folder folder;
  const auto begins = letters(folder, true);
  lab::question q;
  q.prompt = "abc";
  q.choices = {" de", " df", " Af"};
  q.gold = 1;
  const lab::tokenized_question t = lab::tokenize(q, *begins);
  CHECK(t.shared == window{21, 0, 1, 2});
  CHECK(t.endings[0].tokens == window{13, 3, 4});
  CHECK(t.endings[2].tokens == window{15, 5});
  for (const auto& ending : t.endings) CHECK((ending.first_scored == 0 && ending.bytes == 2));

  q.prompt = "abc ";  // the blank joins the letter behind it, so that less is shared than the prompt
  q.choices = {"A", "B"};
  const lab::tokenized_question joined = lab::tokenize(q, *begins);
  CHECK(joined.shared == window{21, 0, 1, 2});
  CHECK(joined.endings[0].tokens == window{15});
  CHECK(joined.endings[0].first_scored == 0);

  q.by_letter = true;
  q.prompt = "abc";
  q.choices = {" A", " B"};
  CHECK(lab::tokenize(q, *begins).endings[1].tokens == window{16});
  q.choices = {" A", " d"};
  CHECK_THROWS_WITH(lab::tokenize(q, *begins),
                    "tokenizer: ' d' is 2 tokens, so that questions cannot be scored by letter");
}

TEST_CASE("Results survive their file, and what is not known stays so") {
  lab::result r;
  r.recipe = "a \"strange\", name";
  r.perplexity = 3.25;
  r.change_percent = -0.5;
  r.kl = 0.00012345;
  r.clipped[2] = 0.25;
  const std::string csv = lab::to_csv({lab::result(), r});
  CHECK(csv.substr(0, csv.find('\n')).compare(0, 33, "recipe,perplexity,change_percent,") == 0);
  const std::vector<lab::result> read = lab::read_results("x.csv", csv);
  REQUIRE(read.size() == 2);
  CHECK(read[1].recipe == r.recipe);
  CHECK(read[1].perplexity == 3.25);
  CHECK(read[1].kl == Approx(0.00012345));
  CHECK(read[1].clipped[2] == 0.25);
  CHECK(std::isnan(read[1].accuracy));
  CHECK(lab::to_csv(read) == csv);
  CHECK_THROWS_WITH(lab::read_results("x.csv", "recipe,other\n"), "x.csv: line 1: has other columns than results have");
  CHECK_THROWS_WITH(lab::read_results("x.csv", csv + "w-e4m3,1\n"), "x.csv: line 4: is not whole");
  std::string broken = csv;
  broken.replace(broken.find("3.25"), 4, "3.2x");
  CHECK_THROWS_WITH(lab::read_results("x.csv", broken), "x.csv: line 3: perplexity is no number");
}

TEST_CASE("A model that gives the same has no divergence, and scores are those of softmax") {
  // Two tokens, hidden values of two: the logits are the hidden values themselves.
  lab::tensor head = lab::tensor::Identity(2, 2), hidden(1, 2);
  hidden << 1, 3;
  lab::for_each_logits(head, hidden, [&](std::size_t, const auto& logits) {
    const lab::softmax_scale s = lab::scale_of_logits(logits);
    CHECK(s.top == 1);
    CHECK(s.log_sum == Approx(std::log(std::exp(1.0) + std::exp(3.0))));
  });
}

TEST_CASE("Magnitudes, means and deviations are those of what passed") {
  lab::observations seen(2);
  std::vector<float> x = {1, -2, 3, -4, 0.001f, 6};
  seen.round(lab::site::keys, 1, {x.data(), 3, 2});
  seen.round(lab::site::keys, 1, {x.data(), 1, 2});
  CHECK(seen.amax(lab::site::keys) == 6);
  CHECK(seen.at(lab::site::keys, 1)[0].amax == 3);
  CHECK(seen.mean(lab::site::keys, 1, 0) == Approx((1 + 3 + 0.001 + 1) / 4));
  CHECK(seen.deviation(lab::site::keys, 1, 1) == Approx(std::sqrt((4 + 16 + 36 + 4) / 4.0 - 0.25)));
  CHECK(seen.of(lab::site::keys).count() == 8);
  CHECK(seen.of(lab::site::keys).below_e4m3() == 1);
  CHECK(seen.of(lab::site::keys).median() == Approx(2).epsilon(0.005));
  CHECK(seen.amaxes(lab::site::keys, 1, {0, 0}) == std::vector<float>{6});
  CHECK(seen.amaxes(lab::site::keys, 1, {0, 1}) == std::vector<float>{3, 6});
}
