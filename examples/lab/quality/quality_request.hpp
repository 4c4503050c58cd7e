// What a quality sweep is asked, and the files it reads.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace lab {

// What is asked of a model. Empty names: not given; a context of 0: chosen here; 0 questions: all.
struct quality_request {
  std::string model, text, questions, tokenizer, calibration, split;
  std::uint64_t tokens = 8192, context = 0, first_questions = 0;
};

// The files that a model's name stands for, in the order of their names; see read_model.
inline std::vector<std::string> files_of_model(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> files;
  if (fs::is_directory(path, ignored)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
      const std::string type = entry.path().extension().string();
      if (type == ".json" || type == ".safetensors" || type == ".bin") files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
    const fs::path tokenizer = fs::path(path).parent_path() / "tokenizer.bin";
    if (fs::exists(tokenizer, ignored)) files.push_back(tokenizer.string());
  }
  return files;
}

inline std::vector<std::string> files_of(const quality_request& r) {
  std::vector<std::string> files = files_of_model(r.model);
  for (const std::string& path : {r.tokenizer, r.text, r.questions, r.calibration})
    if (!path.empty()) files.push_back(path);
  return files;
}

}  // namespace lab
