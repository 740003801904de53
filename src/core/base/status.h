// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "error_codes.h"  // generated from schema/errors.json
#include "tracefire/error.h"

namespace tracefire {

/// Success, or a catalogued error with its text. Cheap to copy; [[nodiscard]] so that none is lost.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message)
      : error_(std::make_shared<Body>(Body{code, std::move(message)})) {}

  bool ok() const { return error_ == nullptr; }
  ErrorCode code() const { return error_->code; }
  /// The text without the code.
  const std::string& message() const { return error_->message; }
  /// "[TF-E0101] …"; "OK" for success.
  std::string str() const;
  /// Throws tracefire::Error where not ok; the public edge calls it.
  void throw_if_error() const;
  /// The same error with `where` in front of its text.
  Status prefixed(const std::string& where) const;

 private:
  struct Body {
    ErrorCode code;
    std::string message;
  };
  std::shared_ptr<const Body> error_;
};

/// The kind that the catalogue gives `code`.
ErrorKind error_kind(ErrorCode code);
/// The catalogue's entry with this number, or nullptr.
const CatalogueEntry* find_catalogue_entry(uint16_t number);

/// A value or the error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: values are results
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: so are errors

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  /// The value; throws tracefire::Error where there is none.
  T value() && {
    status_.throw_if_error();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

/// "size is " << 3 in one expression.
template <class... Parts>
std::string concat_text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Makes an error from parts: error(ErrorCode::kBadAxis, "axis ", axis, " …").
template <class... Parts>
Status error(ErrorCode code, const Parts&... parts) {
  return Status(code, concat_text(parts...));
}

#define TRACEFIRE_JOIN_(a, b) a##b
#define TRACEFIRE_JOIN(a, b) TRACEFIRE_JOIN_(a, b)
/// Returns from the function with the status of `expr` where it is an error.
#define TF_RETURN_IF_ERROR(expr)             \
  do {                                       \
    ::tracefire::Status tf_status_ = (expr); \
    if (!tf_status_.ok()) return tf_status_; \
  } while (0)
/// `TF_ASSIGN(auto x, f())`: x is the value, or the function returns the error.
#define TF_ASSIGN(lhs, expr) TF_ASSIGN_IMPL(TRACEFIRE_JOIN(tf_result_, __LINE__), lhs, expr)
#define TF_ASSIGN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                   \
  if (!tmp.ok()) return tmp.status();  \
  lhs = std::move(*tmp)

}  // namespace tracefire
