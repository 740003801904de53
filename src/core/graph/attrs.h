// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tracefire/dtype.h"
#include "tracefire/shape.h"

namespace tracefire {

/// Value of an attribute. Raw bytes (constants, texts) are std::string.
using Attr = std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>, Shape>;

/// Attributes of a node, sorted by name. Few, so a vector.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const char*, Attr>> entries) {
    for (auto& [name, value] : entries) set(name, value);
  }

  void set(std::string_view name, Attr value);
  const Attr* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  /// Typed reads. The row has filled defaults and checked types before any of these is called,
  /// so a missing attribute is a bug and throws ErrorCode::kInternal.
  bool flag(std::string_view name) const { return get<bool>(name); }
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  double real(std::string_view name) const { return get<double>(name); }
  DType dtype(std::string_view name) const { return get<DType>(name); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  const std::vector<int64_t>& ints(std::string_view name) const {
    return get<std::vector<int64_t>>(name);
  }
  const Shape& shape(std::string_view name) const { return get<Shape>(name); }

  const std::vector<std::pair<std::string, Attr>>& entries() const { return entries_; }
  friend bool operator==(const Attrs& a, const Attrs& b) { return a.entries_ == b.entries_; }

 private:
  template <class T>
  const T& get(std::string_view name) const {
    const Attr* attr = find(name);
    const T* value = attr ? std::get_if<T>(attr) : nullptr;
    if (!value) missing(name);
    return *value;
  }
  [[noreturn]] static void missing(std::string_view name);

  std::vector<std::pair<std::string, Attr>> entries_;
};

}  // namespace tracefire
