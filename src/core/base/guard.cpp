// SPDX-License-Identifier: Apache-2.0
#include "core/base/guard.h"

#include <new>

namespace tracefire {

Status status_of(const std::exception& failure) {
  if (const auto* known = dynamic_cast<const Error*>(&failure)) {
    const std::string text = known->what();
    const size_t end = text.find("] ");  // of "[TF-E0101] "
    return Status(static_cast<ErrorCode>(known->number()),
                  end == std::string::npos ? text : text.substr(end + 2));
  }
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr ||
      dynamic_cast<const std::length_error*>(&failure) != nullptr) {
    return error(ErrorCode::kOutOfMemory,
                 "the host has no memory for a list that this work needs. Use smaller tensors, or "
                 "fewer at a time");
  }
  return error(ErrorCode::kInternal, failure.what(), ". Please report it");
}

}  // namespace tracefire
