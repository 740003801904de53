// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

const char* Reading::why() const {
  // NVML's own words differ from release to release; these do not.
  switch (code) {
    case kOk:
      return "";
    case kNotAsked:
      return "does not apply";
    case kNoFunction:
      return "this driver's NVML does not have it";
    case kNotReady:
      return "needs a second sample";
    case kNoAccess:
      return "no permission";
    case 1:
      return "NVML is shut down";
    case 2:
      return "NVML refused the question";
    case 3:
      return "not supported by this GPU";
    case 4:
      return "no permission";
    case 6:
    case 21:
      return "no data";
    case 9:
      return "the driver is not loaded";
    case 10:
      return "NVML timed out";
    case 13:
      return "this driver's NVML does not have it";
    case 14:
      return "the GPU's information memory is damaged";
    case 15:
      return "the GPU is lost";
    case 16:
      return "the GPU needs a reset";
    case 18:
      return "driver and NVML differ in version";
    case 19:
      return "in use";
    case 28:
      return "it is no longer there";
    default:
      return "NVML error";
  }
}

const char* process_kind_name(ProcessKind kind) {
  switch (kind) {
    case ProcessKind::kCompute:
      return "compute";
    case ProcessKind::kGraphics:
      return "graphics";
    case ProcessKind::kMps:
      return "mps";
  }
  return "";
}

}  // namespace tracefire::monitor
