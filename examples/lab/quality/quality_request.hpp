// What a quality sweep is asked, and the files it reads.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/model/model_folder.hpp"

namespace lab {

// What is asked of a model. Empty names: not given; a context of 0: chosen here; 0 questions: all.
struct quality_request {
  std::string model, text, questions, tokenizer, calibration, split;
  std::uint64_t tokens = 8192, context = 0, first_questions = 0;
};

// What is read for it.
inline std::vector<std::string> files_of(const quality_request& r) {
  std::vector<std::string> files = files_of_model(r.model);
  for (const std::string& path : {r.tokenizer, r.text, r.questions, r.calibration})
    if (!path.empty()) files.push_back(path);
  return files;
}

}  // namespace lab
