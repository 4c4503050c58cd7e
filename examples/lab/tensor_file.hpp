// Reads raw tensors: a header to skip, then little-endian floats of 32 or 16 bits, widened exactly.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "failure.hpp"
#include "octet/convert.hpp"
#include "text.hpp"

namespace lab {

// n little-endian floats of type T as float.
template <class T>
void widen(const unsigned char* bytes, std::size_t n, float* values) {
  using traits = octet::float_traits<T>;
  for (std::size_t i = 0; i < n; ++i, bytes += sizeof(T)) {
    typename traits::bits_type bits = 0;
    for (std::size_t k = sizeof(T); k-- > 0;) bits = static_cast<typename traits::bits_type>(bits << 8 | bytes[k]);
    values[i] = static_cast<float>(traits::from_bits(bits));
  }
}

// The types of float that a file may hold, under the names that checkpoints give them.
struct dtype {
  const char* name;
  std::size_t bytes;
  void (*widen)(const unsigned char* bytes, std::size_t n, float* values);
};
inline constexpr dtype dtypes[] = {
    {"f32", 4, widen<float>}, {"bf16", 2, widen<octet::bfloat16>}, {"f16", 2, widen<octet::float16>}};
inline const dtype& dtype_named(const std::string& name) {
  for (const dtype& type : dtypes)
    if (name == type.name) return type;
  throw failure(name + ": is no type of float");
}

// The floats of a file behind its first `skip` bytes; all of them, or the first `count` where count is not 0.
// Throws a failure that names the file if it cannot be read, holds nothing, or is no whole number of floats.
inline std::vector<float> read_floats(const std::string& path, const dtype& type, std::uint64_t skip,
                                      std::uint64_t count) {
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
    throw failure(path + ": holds " + counted(size, "byte") + ", no more than the " + std::to_string(skip) +
                  " to skip");
  const std::uint64_t bytes = size - skip, held = bytes / type.bytes;
  if (bytes % type.bytes != 0)
    throw failure(path + ": holds " + counted(bytes, "byte") +
                  (skip != 0 ? " behind the " + std::to_string(skip) + " to skip" : "") + ", no whole number of " +
                  std::to_string(type.bytes) + "-byte floats");
  if (count > held)
    throw failure(path + ": holds " + counted(held, "float") + ", fewer than the " + std::to_string(count) +
                  " asked for");
  std::vector<float> values(static_cast<std::size_t>(count != 0 ? count : held));
  unsigned char chunk[16384];
  const auto read = [&](std::size_t n) {
    if (std::fread(chunk, 1, n, file.get()) != n) throw failure(path + ": could not be read to its end");
  };
  // The header is read past, not sought past: a 32-bit `long` does not limit it.
  for (std::uint64_t left = skip; left > 0;) {
    const std::uint64_t n = std::min<std::uint64_t>(left, sizeof chunk);
    read(static_cast<std::size_t>(n));
    left -= n;
  }
  for (std::size_t done = 0; done < values.size();) {
    const std::size_t n = std::min(values.size() - done, sizeof chunk / type.bytes);
    read(n * type.bytes);
    type.widen(chunk, n, values.data() + done);
    done += n;
  }
  return values;
}

}  // namespace lab
