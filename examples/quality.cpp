// What FP8 does to a model: perplexity and answers under recipes for weights, activations and KV cache.
// SPDX-License-Identifier: MIT
//
// Needs CLI11, nlohmann-json, Eigen, oneTBB, PCRE2 and utf8proc; CMake compiles it for this machine, since Eigen chooses
// its instructions at compile time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lab/checks.hpp"
#include "lab/parallel.hpp"
#include "lab/program.hpp"
#include "lab/progress.hpp"
#include "lab/quality/protocol.hpp"
#include "lab/quality/quality_report.hpp"
#include "lab/quality/quality_sweep.hpp"
#include "lab/quality/results.hpp"
#include "lab/quality/run_digest.hpp"
#include "lab/recipes/recipe_names.hpp"
#include "lab/whole_file.hpp"

namespace {

using lab::failure;
using lab::recipe;
using lab::result;

// What the command line asks for.
struct request : lab::quality_request {
  std::string csv, plot, channels, recipes = "default";
  std::uint64_t threads = 0;
  bool luck = false, resume = false;
};

// The recipes by the names between commas; `default` stands for the sweep of the base rows and those left to try.
std::vector<recipe> recipes_of(const std::string& names) {
  std::vector<recipe> recipes;
  const auto add = [&](const std::string& name) {
    for (const recipe& r : recipes)
      if (r.name == name) return;
    recipes.push_back(lab::parse_recipe(name));
  };
  for (const std::string& name : lab::recipe_words::split(names, ',')) {
    if (name == lab::baseline_name) continue;
    if (name != "default") {
      add(name);
      continue;
    }
    for (const lab::named_recipe& known : lab::named_recipes)
      if (known.group != lab::recipe_group::further) add(known.name);
  }
  return recipes;
}

// How often a recipe runs: eight times, with other descales each, where luck is to be seen.
int runs_of(const request& r, const std::string& name) {
  const lab::named_recipe* const known = lab::recipe_words::find(lab::named_recipes, name);
  return r.luck && known != nullptr && known->group == lab::recipe_group::base ? 8 : 1;
}

void list() {
  const auto line = [](const std::string& name, const char* meaning) {
    std::printf("  %-32s %s\n", name.c_str(), meaning);
  };
  const std::pair<lab::recipe_group, const char*> groups[] = {
      {lab::recipe_group::base, "The base rows"},
      {lab::recipe_group::left_to_try, "\nLeft to try; with the base rows this is `default`"},
      {lab::recipe_group::further, "\nFurther"}};
  for (const auto& [group, title] : groups) {
    std::printf("%s\n", title);
    if (group == lab::recipe_group::base) line(lab::baseline_name, "nothing is rounded; always the first row");
    for (const lab::named_recipe& known : lab::named_recipes)
      if (known.group == group) line(known.name, known.meaning);
  }
  std::printf(
      "\nOthers are made of parts joined by '+'. A part is a place, a format, and what else the place knows:\n");
  for (const lab::recipe_words::place& place : lab::recipe_words::places) {
    line(place.name, place.meaning);
    std::string words;
    for (const lab::recipe_words::word& word : lab::recipe_words::words)
      if ((word.at & place.bits) != 0) words += std::string(words.empty() ? "" : " ") + word.name;
    line("", words.c_str());
  }
  std::printf("\nThe words of parts, and parts that are one word\n");
  for (const lab::recipe_words::word& word : lab::recipe_words::words) line(word.name, word.meaning);
  for (const lab::recipe_words::flag& flag : lab::recipe_words::flags) line(flag.name, flag.meaning);
}

void print_results(const std::vector<result>& results) {
  lab::print_text_results(results);
  lab::print_verdict(results);
  lab::print_ranking(results);
  if (!std::isnan(results[0].accuracy)) {
    std::printf("\n");
    lab::print_question_results(results);
  }
  std::printf("\n");
  lab::print_losses(results);
  std::printf("\n%s", lab::legend);
}

// The rows that are there already, which must be of the same run.
std::vector<result> earlier_results(const request& r, const std::string& run) {
  for (const std::string& path : lab::files_of(r))
    if (std::filesystem::is_fifo(path)) throw lab::usage_error(path + ": is a pipe; --resume needs files");
  constexpr std::size_t longest = std::size_t{1} << 24;
  std::vector<result> results = lab::read_results(r.csv, lab::read_whole(r.csv, longest, "file of results"));
  if (results.empty() || results[0].recipe != lab::baseline_name)
    throw failure(r.csv + ": its first row is not the baseline");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string& name = results[i].recipe;
    if (i > 0) lab::parse_recipe(name);
    if (results[i].run != run)
      throw failure(r.csv + ": " + name +
                    " is of another run: of another model, text, questions or calibration, or of "
                    "other numbers of them");
  }
  return results;
}

void answer(const request& r) {
  lab::expect_outputs({r.csv, r.plot, r.channels}, lab::files_of(r));
  const std::vector<recipe> recipes = recipes_of(r.recipes);

  const std::string run = r.csv.empty() ? "" : lab::run_digest(r);
  std::vector<result> results;
  if (r.resume && std::filesystem::exists(r.csv)) results = earlier_results(r, run);
  std::vector<recipe> left;
  for (const recipe& wanted : recipes) {
    bool there = false;
    for (const result& known : results)
      there = there || (known.recipe == wanted.name && (runs_of(r, wanted.name) == 1 || !std::isnan(known.luck_least)));
    if (!there) left.push_back(wanted);
  }
  std::string failed;
  if (!left.empty() || results.empty()) {
    const lab::thread_limit limit(r.threads);
    lab::quality_sweep sweep(r);
    sweep.describe();
    double work = sweep.text_work() + sweep.question_work();
    for (const recipe& of : left) work += runs_of(r, of.name) * sweep.text_work() + sweep.question_work();
    lab::progress shown(work);
    const auto keep = [&](const result& row) {
      const auto same = [&](const result& known) { return known.recipe == row.recipe; };
      const auto place = std::find_if(results.begin(), results.end(), same);
      result& kept = place != results.end() ? *place : results.emplace_back();
      kept = row;
      kept.run = run;
      if (!r.csv.empty()) lab::write_whole(r.csv, lab::to_csv(results));
    };
    const result baseline = sweep.run_baseline(shown);
    if (results.empty()) keep(baseline);
    if (!r.channels.empty()) lab::write_whole(r.channels, lab::channels_csv(sweep.seen()));
    for (const recipe& of : left) try {
        keep(sweep.run(of, runs_of(r, of.name), shown));
      } catch (const std::exception& error) {
        failed += (failed.empty() ? "recipe " : "; recipe ") + of.name + ": " + error.what();
      }
    shown.clear();
    lab::print_magnitudes(sweep.seen());
    std::printf("\n");
    lab::print_key_channels(sweep.seen());
    std::printf("\n");
  }
  print_results(results);
  if (!r.plot.empty()) lab::write_whole(r.plot, lab::drawn(results));
  if (!failed.empty()) throw failure(failed);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What FP8 does to a model: perplexity and answers with weights, activations and KV cache in 8 bits.",
               "quality");
  request r;
  bool only_list = false, only_protocol = false;
  auto* const model = app.add_option(
      "--model", r.model, "Hugging Face folder, or llama2.c checkpoint (the toy model, with its text and questions)");
  auto* const text = app.add_option("--text", r.text, "the text whose tokens are predicted, in UTF-8");
  auto* const questions = app.add_option("--questions", r.questions, "multiple choice, one JSON object a line");
  auto* const first = app.add_option("--first-questions", r.first_questions, "only so many of them");
  auto* const tokens = app.add_option("--tokens", r.tokens, "how much of the text (8192)");
  auto* const context = app.add_option("--context", r.context, "tokens a window (1024, or what the model takes)");
  app.add_option("--split", r.split,
                 "documents end where this stands, or at each empty line (blank-line); a window each")
      ->check(lab::not_empty);
  auto* const recipes = app.add_option("--recipes", r.recipes, "names between commas; default: the sweep of --list");
  auto* const calibration =
      app.add_option("--calibration", r.calibration, "text for static scales (what follows the tokens scored)");
  auto* const tokenizer = app.add_option("--tokenizer", r.tokenizer, "tokenizer.json or tokenizer.bin (the model's)");
  auto* const threads = app.add_option("--threads", r.threads, "threads that compute (one a processor)");
  auto* const csv = app.add_option("--csv", r.csv, "write the results to this file, after every recipe");
  auto* const plot = app.add_option("--plot", r.plot, "draw the results to this file, as SVG");
  auto* const channels = app.add_option("--channels", r.channels, "write each channel of K and V to this file");
  app.add_flag("--luck", r.luck, "run the base rows with eight scales each, to see what luck does");
  app.add_flag("--resume", r.resume, "keep the rows that the csv has, and add what is missing")->needs(csv);
  app.add_flag("--list", only_list, "print the recipes");
  app.add_flag("--protocol", only_protocol, "print what is rounded where, and what the numbers mean");
  for (auto* const path : {model, text, questions, calibration, tokenizer, csv, plot, channels, recipes})
    path->check(lab::not_empty);
  for (auto* const path : {model, text, questions, calibration, tokenizer, csv, plot, channels})
    path->type_name("PATH");
  for (auto* const number : {first, tokens, context}) number->type_name("N")->check(lab::at_least_one);
  threads->type_name("N")->check(CLI::Range(1, 1024));
  first->needs(questions);
  model->needs(text);
  app.footer(
      "Examples:\n"
      "  quality\n"
      "  quality --model SmolLM2-135M-Instruct --text wiki.txt --csv results.csv --plot results.svg\n"
      "  quality --model llama --text wiki.txt --recipes kv-e4m3-token,k-e4m3-prerope-centred");
  return lab::run(app, argc, argv, [&] {
    if (only_list) return list();
    if (only_protocol) return void(std::fputs(lab::protocol, stdout));
    if (r.model.empty()) {
      const std::string toy = OCTET_TOY_MODEL;
      r.model = toy;
      if (r.text.empty()) {
        r.text = toy + "/text.txt";
        if (r.questions.empty()) r.questions = toy + "/questions.jsonl";
      }
    }
    answer(r);
  });
}
