// SPDX-License-Identifier: Apache-2.0
// A member of a JSON document from outside: what is missing or of another kind is named by its
// path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tracefire::inject {

/// "processes[3].cpu_ns is \"x\"; expected a whole number"
struct FieldProblem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Field {
 public:
  using Json = nlohmann::ordered_json;

  explicit Field(const Json& value, std::string path = "")
      : value_(&value), path_(std::move(path)) {}

  const Json& json() const { return *value_; }
  bool has(const std::string& name) const {
    return value_->is_object() && value_->find(name) != value_->end();
  }
  /// A member. Throws FieldProblem where it is missing or this is no object.
  Field operator[](const std::string& name) const {
    if (!value_->is_object()) wrong("an object");
    const auto found = value_->find(name);
    const std::string path = (path_.empty() ? "" : path_ + ".") + name;
    if (found == value_->end()) throw FieldProblem(path + " is missing");
    return Field(*found, path);
  }
  /// Number of members of a list. Throws FieldProblem where this is none.
  size_t size() const {
    if (!value_->is_array()) wrong("a list");
    return value_->size();
  }
  Field at(size_t i) const {
    if (i >= size())
      throw FieldProblem(path_ + " has " + std::to_string(size()) +
                         " members; expected more than " + std::to_string(i));
    return Field((*value_)[i], path_ + "[" + std::to_string(i) + "]");
  }

  /// Throws FieldProblem where the value is of another kind or does not fit.
  template <class T>
  void read(T& to) const {
    if constexpr (std::is_same_v<T, bool>) {
      if (!value_->is_boolean()) wrong("true or false");
      to = value_->get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      to = whole<T>();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!value_->is_number()) wrong("a number");
      to = value_->get<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value_->is_string()) wrong("text");
      to = value_->get<std::string>();
    } else {
      static_assert(std::is_same_v<T, std::vector<std::string>>);
      to.resize(size());
      for (size_t i = 0; i < to.size(); ++i) at(i).read(to[i]);
    }
  }
  template <class T>
  T as() const {
    T value{};
    read(value);
    return value;
  }

  /// A member, `otherwise` where it is missing.
  template <class T>
  T value(const std::string& name, T otherwise) const {
    return has(name) ? (*this)[name].template as<T>() : otherwise;
  }

  [[noreturn]] void wrong(const std::string& expected) const {
    std::string shown = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > 60) shown = shown.substr(0, 60) + " …";
    throw FieldProblem((path_.empty() ? "the document" : path_) + " is " + shown + "; expected " +
                       expected);
  }

 private:
  template <class T>
  T whole() const {
    if (!value_->is_number_integer()) wrong("a whole number");
    if (value_->is_number_unsigned()) {
      const uint64_t value = value_->get<uint64_t>();
      if (value > static_cast<uint64_t>(std::numeric_limits<T>::max())) wrong("a smaller number");
      return static_cast<T>(value);
    }
    const int64_t value = value_->get<int64_t>();  // below zero: what is not is unsigned
    if (std::is_unsigned_v<T> || value < static_cast<int64_t>(std::numeric_limits<T>::min()))
      wrong("a number that is not below the least");
    return static_cast<T>(value);
  }

  const Json* value_;
  std::string path_;
};

/// At most `most` members of a list.
template <class Take>
void each(const Field& list, size_t most, Take take) {
  for (size_t i = 0; i < std::min(list.size(), most); ++i) take(list.at(i));
}

}  // namespace tracefire::inject
