// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tracefire {

/// What `tracefire explain` tells about an error beyond the catalogue's summary and help. From
/// schema/errors.json, in a file of its own: a better wording recompiles nothing else.
struct ErrorText {
  uint16_t number;
  const char* cause;     ///< what happened, at more length than the summary
  const char* expected;  ///< what would have been right
  const char* wrong;     ///< example: what raises it
  const char* right;     ///< example: what to do instead
};

/// Null where the catalogue has no such error.
const ErrorText* find_error_text(uint16_t number);

}  // namespace tracefire
