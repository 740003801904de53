// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"

namespace tracefire {

/// `code` for a path that holds a NUL byte: the system would take what stands before it for the
/// name of another file.
Status check_path(const std::string& path, ErrorCode code);

}  // namespace tracefire
