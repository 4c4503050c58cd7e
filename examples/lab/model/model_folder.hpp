// A model by the name of its folder or file, and where its tokenizer lies.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "hugging_face.hpp"
#include "llama2c.hpp"
#include "transformer.hpp"

namespace lab {

struct stored_model {
  transformer model;
  std::string tokenizer;  // the path where its layout puts it
};

// A Hugging Face folder (config.json, model.safetensors or shards, tokenizer.json), a llama2.c folder (model.bin,
// tokenizer.bin), or a llama2.c checkpoint itself with its tokenizer.bin beside it.
inline stored_model read_model(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path given(path);
  if (!fs::exists(given, ignored)) throw failure(path + ": there is no such file or folder");
  if (!fs::is_directory(given, ignored)) return {read_llama2c(path), (given.parent_path() / "tokenizer.bin").string()};
  if (fs::exists(given / "config.json", ignored)) return {read_hugging_face(path), (given / "tokenizer.json").string()};
  if (fs::exists(given / "model.bin", ignored))
    return {read_llama2c((given / "model.bin").string()), (given / "tokenizer.bin").string()};
  throw failure(path + ": holds neither config.json nor model.bin");
}

// The files that read_model and the tokenizer read of it, in the order of their names, as far as they are there; a path
// that names no folder always counts.
inline std::vector<std::string> files_of_model(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> files;
  const auto add = [&](const fs::path& file) {
    if (fs::exists(file, ignored)) files.push_back(file.string());
  };
  const fs::path given(path);
  if (!fs::is_directory(given, ignored)) {
    files.push_back(path);
    add(given.parent_path() / "tokenizer.bin");
    return files;
  }
  for (const char* name :
       {"config.json", "model.bin", "model.safetensors.index.json", "tokenizer.bin", "tokenizer.json"})
    add(given / name);
  for (const fs::directory_entry& entry : fs::directory_iterator(given, ignored))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace lab
