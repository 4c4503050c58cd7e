// What a sweep found, a row a recipe, and the file that holds it.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "lab/csv.hpp"
#include "lab/failure.hpp"
#include "lab/model/treatment.hpp"
#include "lab/text.hpp"

namespace lab {

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

// Numbers that were not asked for are not measured. Shares are of 1, changes of perplexity in %.
struct result {
  std::string recipe;
  double perplexity = not_measured, change_percent = not_measured;
  double nll = not_measured, nll_change = not_measured, nll_change_error = not_measured;
  double kl = not_measured, top1_agreement = not_measured;
  double luck_least = not_measured, luck_most = not_measured;  // change_percent of descales times 2^(k/8), k = 0 to 7
  double predictions = not_measured;
  double questions = not_measured, chance = not_measured, accuracy = not_measured, accuracy_least = not_measured,
         accuracy_most = not_measured;
  double right_to_wrong = not_measured, wrong_to_right = not_measured, mcnemar_p = not_measured;
  double weights_flushed = not_measured, weights_clipped = not_measured;
  std::array<double, sites> flushed, clipped;
  double seconds = not_measured;
  std::string run;  // the digest of what it is a result of

  result() {
    flushed.fill(not_measured);
    clipped.fill(not_measured);
  }
};

// "q/k/v input" as a column's name.
inline std::string column_name(std::string site_name) {
  for (char& c : site_name) c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
  return site_name;
}

// visit(name, number, decimals) for every number of a row, in the order of the columns.
template <class Result, class Visit>
void for_each_number(Result& r, const Visit& visit) {
  visit("perplexity", r.perplexity, 6);
  visit("change_percent", r.change_percent, 4);
  visit("nll", r.nll, 8);
  visit("nll_change", r.nll_change, 8);
  visit("nll_change_error", r.nll_change_error, 8);
  visit("kl", r.kl, 8);
  visit("top1_agreement", r.top1_agreement, 6);
  visit("luck_least_percent", r.luck_least, 4);
  visit("luck_most_percent", r.luck_most, 4);
  visit("predictions", r.predictions, 0);
  visit("questions", r.questions, 0);
  visit("chance", r.chance, 6);
  visit("accuracy", r.accuracy, 6);
  visit("accuracy_least", r.accuracy_least, 6);
  visit("accuracy_most", r.accuracy_most, 6);
  visit("right_to_wrong", r.right_to_wrong, 0);
  visit("wrong_to_right", r.wrong_to_right, 0);
  visit("mcnemar_p", r.mcnemar_p, 6);
  visit("weights_flushed", r.weights_flushed, 8);
  visit("weights_clipped", r.weights_clipped, 8);
  for (std::size_t i = 0; i < sites; ++i) {
    visit((column_name(site_names[i]) + "_flushed").c_str(), r.flushed[i], 8);
    visit((column_name(site_names[i]) + "_clipped").c_str(), r.clipped[i], 8);
  }
  visit("seconds", r.seconds, 2);
}

inline std::vector<std::string> result_columns() {
  std::vector<std::string> names = {"recipe"};
  const result empty;
  for_each_number(empty, [&](const char* name, double, int) { names.emplace_back(name); });
  names.push_back("run");
  return names;
}

inline std::string to_csv(const std::vector<result>& results) {
  csv file(result_columns());
  for (const result& r : results) {
    std::vector<std::string> cells = {r.recipe};
    for_each_number(r,
                    [&](const char*, double number, int decimals) { cells.push_back(csv_number(number, decimals)); });
    cells.push_back(r.run);
    file.row(cells);
  }
  return file.str();
}

// The rows of a file that to_csv wrote; a failure names the file and the line.
inline std::vector<result> read_results(const std::string& path, const std::string& file) {
  std::vector<result> results;
  std::size_t line = 0;
  for (const std::vector<std::string>& cells : csv_rows(file)) {
    ++line;
    const std::string where = path + ": line " + std::to_string(line);
    if (line == 1) {
      if (cells != result_columns()) throw failure(where + ": has other columns than results have");
      continue;
    }
    if (cells.size() != result_columns().size()) throw failure(where + ": is not whole");
    result r;
    r.recipe = cells[0];
    std::size_t i = 1;
    for_each_number(r, [&](const char* name, double& number, int) {
      const std::string& cell = cells[i++];
      char* end = nullptr;
      const bool written = cell.find_first_not_of("+-.0123456789e") == cell.npos;
      number = cell.empty() ? not_measured : std::strtod(cell.c_str(), &end);
      if (!cell.empty() && (!written || *end != '\0' || !std::isfinite(number)))
        throw failure(where + ": " + name + " is no number");
    });
    r.run = cells.back();
    results.push_back(r);
  }
  if (line == 0) throw failure(path + ": is empty");
  return results;
}

}  // namespace lab
