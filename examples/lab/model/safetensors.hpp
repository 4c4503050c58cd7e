// Reads a safetensors file: named tensors whose header is checked against the bytes before any is used.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lab/failure.hpp"
#include "lab/mapped_file.hpp"
#include "lab/tensor_file.hpp"
#include "lab/text.hpp"

namespace lab {

// A tensor as it lies in the file.
struct stored_tensor {
  std::string type;  // as the format has it: F32, BF16 ...
  std::vector<std::uint64_t> shape;
  const unsigned char* bytes = nullptr;
  std::uint64_t first = 0, last = 0;  // where in the data, in bytes

  std::uint64_t count() const {
    std::uint64_t n = 1;
    for (const std::uint64_t side : shape) n *= side;
    return n;
  }
};

inline std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string words;
  for (const std::uint64_t side : shape) words += (words.empty() ? "" : " x ") + std::to_string(side);
  return words.empty() ? "a single value" : words;
}

// Eight bytes that count the header's, the header in JSON, then the data, which the tensors share without a gap.
// Source: the format's description in the safetensors repository.
class safetensors {
 public:
  explicit safetensors(const std::string& path) : file_(path) {
    constexpr std::uint64_t longest = 100'000'000;  // the format's own limit
    if (file_.size() < 8) throw failure(path + ": holds " + counted(file_.size(), "byte") + ", no safetensors header");
    std::uint64_t length = 0;
    for (int i = 8; i-- > 0;) length = length << 8 | file_.data()[i];
    if (length > longest)
      throw failure(path + ": the header's length of " + counted(length, "byte") + " is more than the format allows");
    if (length > file_.size() - 8)
      throw failure(path + ": is cut off: the header of " + counted(length, "byte") + " is longer than the file");
    data_ = file_.data() + 8 + length;
    size_ = file_.size() - 8 - length;
    read_header(std::string(reinterpret_cast<const char*>(file_.data()) + 8, static_cast<std::size_t>(length)));
    expect_no_gap();
  }

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, stored_tensor>& tensors() const { return tensors_; }

 private:
  static std::uint64_t bytes_of(const std::string& type) {
    static const std::map<std::string, std::uint64_t> sizes = {
        {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"I64", 8},
        {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U64", 8},  {"U32", 4},     {"U16", 2},     {"U8", 1},      {"BOOL", 1}};
    const auto size = sizes.find(type);
    return size == sizes.end() ? 0 : size->second;
  }

  [[noreturn]] void wrong(const std::string& name, const std::string& what) const {
    throw failure(path() + ": tensor " + name + " " + what);
  }

  void read_header(const std::string& text) {
    nlohmann::json header;
    try {
      header = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception&) {
      throw failure(path() + ": the header is no JSON");
    }
    if (!header.is_object()) throw failure(path() + ": the header is no JSON object");
    for (const auto& [name, entry] : header.items())
      if (name != "__metadata__") tensors_.emplace(name, read_entry(name, entry));
    if (tensors_.empty()) throw failure(path() + ": holds no tensor");
  }

  stored_tensor read_entry(const std::string& name, const nlohmann::json& entry) const {
    const auto field = [&](const char* key) -> const nlohmann::json& {
      if (!entry.is_object() || !entry.contains(key)) wrong(name, std::string("has no ") + key);
      return entry.at(key);
    };
    const auto numbers = [&](const char* key) {
      const nlohmann::json& list = field(key);
      if (!list.is_array()) wrong(name, std::string(key) + " is no list");
      for (const nlohmann::json& number : list)
        if (!number.is_number_unsigned()) wrong(name, std::string(key) + " holds what is no whole number");
      return list.get<std::vector<std::uint64_t>>();
    };
    stored_tensor t;
    if (!field("dtype").is_string()) wrong(name, "dtype is no string");
    t.type = field("dtype").get<std::string>();
    t.shape = numbers("shape");
    const std::vector<std::uint64_t> offsets = numbers("data_offsets");
    const std::uint64_t bytes = bytes_of(t.type);
    if (bytes == 0) wrong(name, "dtype " + t.type + " is not known");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) wrong(name, "data_offsets are no beginning and end");
    if (offsets[1] > size_)
      wrong(name, "ends at byte " + std::to_string(offsets[1]) + " of the data, the file at " + std::to_string(size_) +
                      ": is cut off, or its header is wrong");
    t.first = offsets[0], t.last = offsets[1];
    t.bytes = data_ + t.first;
    std::uint64_t needed = bytes;
    for (const std::uint64_t side : t.shape) {
      if (side != 0 && needed > size_ / side)
        wrong(name, "shape " + shape_text(t.shape) + " is more than the file holds");
      needed *= side;
    }
    if (needed != t.last - t.first)
      wrong(name, "holds " + counted(t.last - t.first, "byte") + ", its shape " + shape_text(t.shape) + " of " +
                      t.type + " needs " + std::to_string(needed));
    return t;
  }

  void expect_no_gap() const {
    std::vector<std::pair<std::uint64_t, const std::pair<const std::string, stored_tensor>*>> places;
    for (const auto& named : tensors_) places.emplace_back(named.second.first, &named);
    std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second->second.last) < std::pair(b.first, b.second->second.last);
    });
    std::uint64_t end = 0;
    for (const auto& [first, named] : places) {
      if (first < end) wrong(named->first, "overlaps the one before it");
      if (first > end) wrong(named->first, "lies behind a gap of " + counted(first - end, "byte"));
      end = named->second.last;
    }
    if (end != size_) throw failure(path() + ": holds " + counted(size_ - end, "byte") + " behind its last tensor");
  }

  mapped_file file_;
  const unsigned char* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::map<std::string, stored_tensor> tensors_;
};

}  // namespace lab
