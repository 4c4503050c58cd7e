// Types by name, and a benchmark's name from its parts: verb/type/format/.../level.
// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <string>

#include "octet/octet.hpp"

namespace harness {

template <class T>
inline constexpr const char* name_of = nullptr;
template <>
inline constexpr const char* name_of<float> = "float";
template <>
inline constexpr const char* name_of<octet::float16> = "float16";
template <>
inline constexpr const char* name_of<octet::bfloat16> = "bfloat16";
template <>
inline constexpr const char* name_of<octet::e4m3> = "e4m3";
template <>
inline constexpr const char* name_of<octet::e5m2> = "e5m2";
template <>
inline constexpr const char* name_of<octet::e4m3_ieee> = "e4m3_ieee";
template <>
inline constexpr const char* name_of<octet::e4m3fnuz> = "e4m3fnuz";
template <>
inline constexpr const char* name_of<octet::e5m2fnuz> = "e5m2fnuz";
template <>
inline constexpr const char* name_of<octet::e4m3b11fnuz> = "e4m3b11fnuz";
template <>
inline constexpr const char* name_of<octet::e3m4> = "e3m4";
template <>
inline constexpr const char* name_of<octet::e8m0> = "e8m0";
template <>
inline constexpr const char* name_of<octet::p3109_p3> = "p3109_p3";
template <>
inline constexpr const char* name_of<octet::p3109_p4> = "p3109_p4";
template <>
inline constexpr const char* name_of<octet::e2m3> = "e2m3";
template <>
inline constexpr const char* name_of<octet::e3m2> = "e3m2";
template <>
inline constexpr const char* name_of<octet::e2m1> = "e2m1";

inline std::string path(std::initializer_list<std::string> parts) {
  std::string all;
  for (const std::string& part : parts)
    if (!part.empty()) all += (all.empty() ? "" : "/") + part;
  return all;
}

// Without what Google Benchmark adds to a name.
inline std::string short_name(const std::string& name) { return name.substr(0, name.find("/manual_time")); }

}  // namespace harness
