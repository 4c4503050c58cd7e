// A model by the name of its folder or file, and where its tokenizer lies.
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>

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

}  // namespace lab
