// A line on the terminal while something long runs: how far it is, and the time left.
// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "text.hpp"

namespace lab {

// Written over itself on standard error where that is a terminal; nothing elsewhere.
class progress {
 public:
  explicit progress(double work) : work_(work), on_terminal_(::isatty(STDERR_FILENO) != 0 && can_erase()) {}
  ~progress() { clear(); }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void begin(std::string what) {
    what_ = std::move(what);
    show();
  }
  void advance(double work) {
    done_ += work;
    show();
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  using clock = std::chrono::steady_clock;

  static bool can_erase() {
    const char* const kind = std::getenv("TERM");
    return kind != nullptr && *kind != '\0' && std::string(kind) != "dumb";
  }

  void show() {
    const clock::time_point now = clock::now();
    if (!on_terminal_ || (shown_ && now - last_ < std::chrono::milliseconds(200))) return;
    last_ = now;
    shown_ = true;
    const double share = done_ < work_ ? done_ / work_ : 1,
                 passed = std::chrono::duration<double>(now - began_).count();
    constexpr int width = 24;
    const int full = static_cast<int>(share * width);
    std::string line = "\r\033[K[" + std::string(static_cast<std::size_t>(full), '#') +
                       std::string(static_cast<std::size_t>(width - full), '.') + "] " + what_;
    if (share > 0.01 && passed > 1) line += ", " + duration(passed / share * (1 - share)) + " left";
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
  }
  static std::string duration(double seconds) {
    const int s = static_cast<int>(seconds + 0.5);
    return s < 60     ? text("%d s", s)
           : s < 3600 ? text("%d min %02d s", s / 60, s % 60)
                      : text("%d h %02d min", s / 3600, s / 60 % 60);
  }

  double work_, done_ = 0;
  bool on_terminal_, shown_ = false;
  std::string what_;
  clock::time_point began_ = clock::now(), last_;
};

}  // namespace lab
