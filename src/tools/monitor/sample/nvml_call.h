// SPDX-License-Identifier: Apache-2.0
// How an optional function of NVML is called.
#pragma once

#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

/// What the function returns; Reading::kNoFunction where the installed NVML lacks it.
template <class F, class... Arguments>
int nvml_call(F* function, Arguments... arguments) {
  return function == nullptr ? Reading::kNoFunction : function(arguments...);
}

/// A value where `code` is success, scaled; else the code as the reason.
inline Reading nvml_reading(int code, double value, double scale = 1) {
  return code == Reading::kOk ? Reading::of(value * scale) : Reading::missing(code);
}

}  // namespace tracefire::monitor
