// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tracefire/control.h"

namespace tracefire::trace {

/// Graphs name host functions by number. They live as long as the process, since any graph may
/// still call them.
int64_t register_host_function(HostFunction function);
/// nullptr for an unknown number.
const HostFunction* find_host_function(int64_t number);

}  // namespace tracefire::trace
