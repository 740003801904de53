// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/base/status.h"
#include "tracefire/device.h"

namespace tracefire {

/// parse_device() that returns the error (kUnknownDevice) instead of throwing it.
Result<Device> try_parse_device(std::string_view text);

}  // namespace tracefire
