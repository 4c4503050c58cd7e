// Reads raw float32 tensors: a header to skip, then little-endian floats.
// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "program.hpp"

namespace lab {

// The floats of a file behind its first `skip` bytes; all of them, or the first `count` where count is not 0.
// Throws a failure that names the file if it cannot be read, holds nothing, or is no whole number of floats.
inline std::vector<float> read_floats(const std::string& path, std::uint64_t skip = 0, std::uint64_t count = 0) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) throw failure(path + ": is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw failure(path + ": is no regular file: its size is unknown");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw failure(path + ": could not be opened: " + std::strerror(errno));
  const std::uint64_t size = fs::file_size(path, error);
  if (error) throw failure(path + ": could not be read: " + error.message());
  if (size == 0) throw failure(path + ": is empty");
  if (skip >= size)
    throw failure(path + ": holds " + std::to_string(size) + " bytes, all of them within the " + std::to_string(skip) +
                  " to skip");
  const std::uint64_t bytes = size - skip, held = bytes / 4;
  if (bytes % 4 != 0)
    throw failure(path + ": " + std::to_string(bytes) + " bytes" +
                  (skip != 0 ? " behind the " + std::to_string(skip) + " to skip" : std::string()) +
                  " are no whole number of 4-byte floats");
  if (count > held)
    throw failure(path + ": holds " + std::to_string(held) + " floats, fewer than the " + std::to_string(count) +
                  " asked for");
  std::vector<float> values(static_cast<std::size_t>(count != 0 ? count : held));
  // The header is read past, not sought past: a 32-bit `long` does not limit it.
  for (std::uint64_t left = skip; left > 0;) {
    char header[4096];
    const std::size_t some = left < sizeof header ? static_cast<std::size_t>(left) : sizeof header;
    if (std::fread(header, 1, some, file.get()) != some) throw failure(path + ": could not be read to its end");
    left -= some;
  }
  if (std::fread(values.data(), 4, values.size(), file.get()) != values.size())
    throw failure(path + ": could not be read to its end");
  const std::uint16_t one = 1;
  unsigned char first = 0;
  std::memcpy(&first, &one, 1);
  if (first == 0)  // a big-endian machine
    for (float& value : values) {
      unsigned char b[4];
      std::memcpy(b, &value, 4);
      const unsigned char swapped[4] = {b[3], b[2], b[1], b[0]};
      std::memcpy(&value, swapped, 4);
    }
  return values;
}

}  // namespace lab
