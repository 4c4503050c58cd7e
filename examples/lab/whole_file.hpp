// Reads or writes a file whole or not at all.
// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "failure.hpp"

namespace lab {

// All bytes of a file, at most `longest`. Throws a failure that names the file if it cannot be read, is empty, or is
// longer than a KIND can be.
inline std::string read_whole(const std::string& path, std::size_t longest, const std::string& kind) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw failure(path + ": could not be opened: " + std::strerror(errno));
  std::string bytes;
  char chunk[1 << 16];
  while (file.read(chunk, sizeof chunk), file.gcount() > 0) {
    bytes.append(chunk, static_cast<std::size_t>(file.gcount()));
    if (bytes.size() > longest) throw failure(path + ": is too long for a " + kind);
  }
  if (file.bad()) throw failure(path + ": could not be read");
  if (bytes.empty()) throw failure(path + ": is empty");
  return bytes;
}

// While one of these lives, an interrupt waits; it is delivered when the object dies.
class interrupts_wait {
 public:
  interrupts_wait() {
    arrived() = 0;
    for (int i = 0; i < count; ++i) before_[i] = std::signal(signals[i], [](int number) { arrived() = number; });
  }
  ~interrupts_wait() {
    for (int i = 0; i < count; ++i)
      if (before_[i] != SIG_ERR) std::signal(signals[i], before_[i]);
    if (arrived() != 0) std::raise(arrived());
  }
  interrupts_wait(const interrupts_wait&) = delete;
  interrupts_wait& operator=(const interrupts_wait&) = delete;

 private:
#ifdef SIGHUP
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
#else
  static constexpr int signals[] = {SIGINT, SIGTERM};
#endif
  static constexpr int count = sizeof signals / sizeof *signals;
  static volatile std::sig_atomic_t& arrived() {
    static volatile std::sig_atomic_t number = 0;
    return number;
  }
  void (*before_[count])(int) = {};
};

// The file that `path` names once links are followed, whether it exists or not.
inline std::filesystem::path target_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path target = fs::absolute(path, ignored);
  for (int i = 0; i < 40 && fs::is_symlink(target, ignored); ++i)
    target = target.parent_path() / fs::read_symlink(target, ignored);
  return fs::weakly_canonical(target, ignored);
}

// Two names of one file; an empty name names none.
inline bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return !a.empty() && !b.empty() && (target_of(a) == target_of(b) || std::filesystem::equivalent(a, b, ignored));
}

// Throws unless `path` could be written: its folder exists, and it is neither a folder itself nor a file that is write
// protected. For a program to ask before its work.
inline void expect_writable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::path(path).parent_path();
  if (path.empty()) throw failure("output file: its name is empty");
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    throw failure(path + ": the folder " + folder.string() + " does not exist");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) throw failure(path + ": could not be written: " + error.message());
  if (fs::is_directory(status)) throw failure(path + ": is a folder");
  if (!fs::is_regular_file(status)) return;
  std::FILE* const file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) throw failure(path + ": could not be written: " + std::strerror(errno));
  std::fclose(file);
}

// Throws unless every output could be written and is a file of its own: not another output, and none of the inputs.
// Empty names are those of files that were not asked for.
inline void expect_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) continue;
    expect_writable(outputs[i]);
    for (std::size_t k = 0; k < i; ++k)
      if (same_file(outputs[i], outputs[k])) throw usage_error(outputs[i] + ": is named for two outputs");
    for (const std::string& input : inputs)
      if (same_file(outputs[i], input)) throw usage_error(outputs[i] + ": is read, and would be overwritten");
  }
}

// Writes `text` to a new file beside `path` and renames it over `path`: whoever looks sees the old file or the whole
// new one, and nothing is left behind on an error or an interrupt (a kill -9 within the milliseconds of writing leaves
// NAME.part0). What is no regular file (a pipe) is written to, and so is standard output by the name of /dev/stdout.
inline void write_whole(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  expect_writable(path);
  const auto put = [&](std::FILE* file, const std::string& name) {
    const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if ((std::fclose(file) == 0) && whole) return;
    const int reason = errno;
    if (name != path) std::remove(name.c_str());
    throw failure(path + ": could not be written: " + std::strerror(reason));
  };
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (path == "/dev/stdout" || (fs::exists(status) && !fs::is_regular_file(status))) {
    std::fflush(stdout);
    std::FILE* file = std::fopen(path.c_str(), "ab");
    if (file == nullptr) throw failure(path + ": could not be written: " + std::strerror(errno));
    put(file, path);
    return;
  }
  // A link is followed, so that the file it names is replaced and not the link.
  const std::string target = target_of(path).string();
  const interrupts_wait waiting;
  std::FILE* file = nullptr;
  std::string part;
  for (int i = 0; i < 100 && file == nullptr; ++i) {
    part = target + ".part" + std::to_string(i);
    file = std::fopen(part.c_str(), "wbx");
    if (file == nullptr && errno != EEXIST) break;
  }
  if (file == nullptr) throw failure(path + ": could not be written: " + std::strerror(errno));
  put(file, part);
  if (fs::exists(status)) fs::permissions(part, status.permissions(), ignored);
  std::error_code error;
  fs::rename(part, target, error);
  if (error) {
    std::remove(part.c_str());
    throw failure(path + ": could not be written: " + error.message());
  }
}

}  // namespace lab
