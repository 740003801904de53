// SPDX-License-Identifier: Apache-2.0
// What nvidia-smi's --query-gpu tells of a GPU beyond the metrics: read only where it is asked for.
#pragma once

#include <string>
#include <string_view>

#include "backends/nvidia/nvml_monitor_api.h"
#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

/// Asks NVML for the field of that name. A name that is not known here, or whose function the
/// installed NVML lacks, has the code kNoFunction.
Answer ask_nvml(std::string_view field, const nvidia::OpenLibrary& nvml, nvidia::NvmlDevice device);

}  // namespace tracefire::monitor
