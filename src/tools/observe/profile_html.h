// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tracefire/profiler.h"

namespace tracefire::profiler {

/// The parts of a profile's page, for pages that hold more: time line, operations, kernels, steps,
/// memory, notes.
std::string html_sections(const Profile& profile);

}  // namespace tracefire::profiler
