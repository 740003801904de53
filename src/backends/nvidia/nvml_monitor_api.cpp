// SPDX-License-Identifier: Apache-2.0
#include "backends/nvidia/nvml_monitor_api.h"

namespace tracefire::nvidia {

double NvmlFieldValue::as_number() const {
  switch (type) {
    case 0:
      return value.real;
    case 1:
      return value.u32;
    case 2:
      return static_cast<double>(value.ulong_value);
    case 3:
      return static_cast<double>(value.u64);
    case 4:
      return static_cast<double>(value.i64);
    case 5:
      return value.i32;
    case 6:
      return value.u16;
    default:
      return 0;
  }
}

NvmlMonitorApi load_nvml_monitor_api(const OpenLibrary& nvml) {
  NvmlMonitorApi api;
#define TRACEFIRE_LOAD(name, arguments) \
  api.name = reinterpret_cast<int(*) arguments>(nvml.symbol(#name));
  TRACEFIRE_NVML_MONITOR_FUNCTIONS(TRACEFIRE_LOAD)
#undef TRACEFIRE_LOAD
  return api;
}

}  // namespace tracefire::nvidia
