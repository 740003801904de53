// SPDX-License-Identifier: Apache-2.0
//
// What only a running machine tells: its devices' state, and whether they compute.
#pragma once

#include "tools/doctor/doctor.h"
#include "tools/doctor/survey.h"

namespace tracefire::doctor {

/// Adds what NVML, the kernel's log and the modes of device nodes tell.
void add_live_facts(const Root& root, const Data& data, Machine* machine);
/// What the trials of the GPU gave.
struct LiveResults {
  std::vector<std::string> lines;  ///< a sentence for each trial
  std::vector<Finding> findings;   ///< an error for each that failed
  std::vector<ProductTrial> products;
  std::string errors;  ///< the driver's words, for the rules that read logs
};
/// Tries the GPU out, each trial in a limited process of its own: driver start, allocation, copies,
/// a kernel, a product, a convolution, memory bandwidth, and a product in each framework.
LiveResults run_live_tests(const Root& root, const Survey& survey, const std::string& framework);

}  // namespace tracefire::doctor
