// Tells one run from another: a digest of what a sweep reads, and of how it was asked.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "lab/mapped_file.hpp"
#include "lab/text.hpp"
#include "quality_request.hpp"

namespace lab {

// FNV-1a over words of 8 bytes; not against somebody who means to deceive.
class digest {
  std::uint64_t state_ = 0xCBF29CE484222325;

  void add_word(std::uint64_t word) { state_ = (state_ ^ word) * 0x100000001B3, state_ ^= state_ >> 32; }

 public:
  void add(const void* bytes, std::size_t n) {
    const unsigned char* const first = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < n; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, first + i, std::min<std::size_t>(8, n - i));
      add_word(word);
    }
    add_word(n);
  }
  void add(const std::string& text) { add(text.data(), text.size()); }
  std::string hexadecimal() const { return text("%016llx", static_cast<unsigned long long>(state_)); }
};

// Pipes, which can be read once, are left out.
inline std::string run_digest(const quality_request& r) {
  digest d;
  for (const std::string& path : files_of(r)) {
    std::error_code ignored;
    if (std::filesystem::is_fifo(path, ignored)) continue;
    const mapped_file file(path);
    d.add(file.data(), file.size());
  }
  for (const std::string& part : {r.tokenizer, r.questions, r.calibration}) d.add(part.empty() ? "none" : "given");
  d.add(r.split);
  for (const std::uint64_t n : {r.tokens, r.context, r.first_questions}) d.add(&n, sizeof n);
  return d.hexadecimal();
}

}  // namespace lab
