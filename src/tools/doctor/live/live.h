// SPDX-License-Identifier: Apache-2.0
//
// What only a running machine tells: its devices' state, and whether they compute.
#pragma once

#include "tools/doctor/survey.h"

namespace tracefire::doctor {

/// Adds what NVML, the kernel's log and the modes of device nodes tell.
void add_live_facts(const Data& data, Machine* machine);
/// Tries the GPU out, each test in a limited process of its own. Adds a line for each test, and a
/// finding for each that failed.
void run_live_tests(const Data& data, const Survey& survey, std::vector<Finding>* findings,
                    std::vector<std::string>* lines);

}  // namespace tracefire::doctor
