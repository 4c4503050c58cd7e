// A file as memory, read by the system as it is used (POSIX).
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "failure.hpp"

namespace lab {

// Throws a failure that names the file if it cannot be opened, is no regular file, or is empty.
class mapped_file {
 public:
  explicit mapped_file(std::string path) : path_(std::move(path)) {
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) throw failure(path_ + ": could not be opened: " + std::strerror(errno));
    struct ::stat status;
    const bool known = ::fstat(file, &status) == 0;
    const std::string wrong = !known                     ? std::strerror(errno)
                              : !S_ISREG(status.st_mode) ? "is no regular file"
                              : status.st_size == 0      ? "is empty"
                                                         : "";
    if (wrong.empty()) {
      size_ = static_cast<std::size_t>(status.st_size);
      void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
      if (memory != MAP_FAILED) bytes_ = static_cast<const unsigned char*>(memory);
    }
    const int reason = errno;
    ::close(file);
    if (!wrong.empty()) throw failure(path_ + ": " + wrong);
    if (bytes_ == nullptr) throw failure(path_ + ": could not be mapped: " + std::strerror(reason));
  }
  mapped_file(mapped_file&& other) noexcept
      : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, nullptr)), size_(other.size_) {}
  mapped_file& operator=(mapped_file&&) = delete;
  ~mapped_file() {
    if (bytes_ != nullptr) ::munmap(const_cast<unsigned char*>(bytes_), size_);
  }

  const std::string& path() const { return path_; }
  const unsigned char* data() const { return bytes_; }
  std::size_t size() const { return size_; }

 private:
  std::string path_;
  const unsigned char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace lab
