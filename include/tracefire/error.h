// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "tracefire/export.h"

namespace tracefire {

/// What kind of failure a code is; Python maps it to the closest exception class.
enum class ErrorKind : uint8_t {
  kInvalidArgument,     // ValueError
  kType,                // TypeError
  kNotFound,            // FileNotFoundError / KeyError, tf.errors.NotFoundError
  kUnimplemented,       // NotImplementedError
  kOutOfRange,          // IndexError
  kResourceExhausted,   // MemoryError
  kFailedPrecondition,  // RuntimeError
  kDataLoss,            // RuntimeError
  kUnavailable,         // RuntimeError: device or library cannot be used
  kCancelled,           // KeyboardInterrupt
  kInternal,            // RuntimeError: a bug of ours
};

/// Names of the catalogue's errors, kShapeMismatch and so on: in tracefire/error_codes.h, which is
/// made from the catalogue.
enum class ErrorCode : uint16_t;

/// The exception of the public edge. `what()` is the whole text: "[TF-E0103] …".
class TRACEFIRE_API Error : public std::runtime_error {
 public:
  Error(uint16_t number, ErrorKind kind, const std::string& text)
      : std::runtime_error(text), number_(number), kind_(kind) {}
  /// Catalogue number: 103 for TF-E0103; `tracefire explain TF-E0103` tells more.
  uint16_t number() const { return number_; }
  bool is(ErrorCode code) const { return number_ == static_cast<uint16_t>(code); }
  ErrorKind kind() const { return kind_; }
  /// "TF-E0103".
  std::string code() const;

 private:
  uint16_t number_;
  ErrorKind kind_;
};

}  // namespace tracefire
