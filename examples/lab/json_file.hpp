// JSON objects from files, and their fields, with complaints that name the file and the field.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "failure.hpp"
#include "whole_file.hpp"

namespace lab {

// The JSON object that the bytes of a file hold; every complaint names the file, and where it can the place.
inline nlohmann::json parse_json_object(const std::string& path, const std::string& json) {
  try {
    constexpr int deepest = 100;
    nlohmann::json root = nlohmann::json::parse(json, [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      if (depth > deepest) throw failure(path + ": is nested deeper than " + std::to_string(deepest));
      return true;
    });
    if (!root.is_object()) throw failure(path + ": is no JSON object");
    return root;
  } catch (const nlohmann::json::parse_error& error) {
    if (error.byte > json.size()) throw failure(path + ": is no JSON: ends too early");
    const std::string before = json.substr(0, error.byte - 1);  // the byte at fault is counted from 1
    throw failure(path + ": is no JSON from line " +
                  std::to_string(1 + std::count(before.begin(), before.end(), '\n')) + ", column " +
                  std::to_string(before.size() - before.rfind('\n')) + " on");
  } catch (const nlohmann::json::out_of_range&) {
    throw failure(path + ": holds a number too large for a double");
  }
}

inline nlohmann::json read_json_object(const std::string& path) {
  return parse_json_object(path, read_whole(path, std::size_t{1} << 24, "JSON file read here"));
}

// A value as complaints quote it; what is long is cut between two characters.
inline std::string in_quotes(const std::string& text) {
  if (text.size() <= 60) return "'" + text + "'";
  std::size_t kept = 57;
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80) --kept;
  return "'" + text.substr(0, kept) + "...'";
}
inline std::string in_quotes(const nlohmann::json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  if (value.is_string()) return in_quotes(value.get<std::string>());
  return value.dump();
}

// A value within a JSON file; complaints call it by its path, as in "FILE: model.type". What is missing reads as null.
// It refers to the parsed file, which must outlive it.
class json_field {
 public:
  json_field(std::string file, const nlohmann::json& root) : file_(std::move(file)), value_(&root) {}

  json_field operator[](const std::string& key) const {
    static const nlohmann::json null;
    const bool there = value_->is_object() && value_->contains(key);
    return {file_, name_.empty() ? key : name_ + "." + key, there ? value_->at(key) : null};
  }
  json_field operator[](std::size_t index) const {
    return {file_, name_ + "[" + std::to_string(index) + "]", value_->at(index)};
  }

  const nlohmann::json& value() const { return *value_; }
  bool missing() const { return value_->is_null(); }
  const nlohmann::json& object() const { return expect(value_->is_object(), "no object"); }
  const nlohmann::json& list() const { return expect(value_->is_array(), "no list"); }
  const std::string& text() const { return expect(value_->is_string(), "no string").get_ref<const std::string&>(); }
  bool flag(bool otherwise) const {
    return missing() ? otherwise : expect(value_->is_boolean(), "neither true nor false").get<bool>();
  }
  // A whole number from `least` to 2147483647.
  std::int32_t count(std::int32_t least = 0) const {
    const bool whole = value_->is_number_integer();
    const bool fits = whole && value_->get<std::int64_t>() >= least && value_->get<std::int64_t>() <= 0x7FFFFFFF;
    return expect(fits, "no whole number from " + std::to_string(least) + " to 2147483647").get<std::int32_t>();
  }
  // A number above zero.
  double number() const {
    return expect(value_->is_number() && value_->get<double>() > 0, "no number above zero").get<double>();
  }

  // What a table has under the name that this field is.
  template <class T>
  const T& look_up(const std::map<std::string, T>& table) const {
    const auto found = table.find(text());
    if (found == table.end()) throw not_read();
    return found->second;
  }

  std::string name() const { return file_ + ": " + name_; }
  failure wrong(const std::string& what) const { return failure(name() + " " + what); }
  failure not_read() const { return wrong("is " + in_quotes(*value_) + ", which is not read here"); }

 private:
  json_field(std::string file, std::string name, const nlohmann::json& value)
      : file_(std::move(file)), name_(std::move(name)), value_(&value) {}
  const nlohmann::json& expect(bool right, const std::string& otherwise) const {
    if (missing()) throw wrong("is missing");
    if (!right) throw wrong("is " + in_quotes(*value_) + ", " + otherwise);
    return *value_;
  }

  std::string file_, name_;
  const nlohmann::json* value_;
};

}  // namespace lab
