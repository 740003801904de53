// SPDX-License-Identifier: Apache-2.0
//
// What is here, one sentence or entry a line.
#pragma once

#include <functional>

#include "tools/doctor/survey.h"

namespace tracefire::doctor {

/// `verdict_for` gives the verdict of the environment with a prefix.
std::vector<std::string> inventory_lines(
    const Root& root, const Survey& survey,
    const std::function<std::string(const std::string&)>& verdict_for);

/// The CUDA libraries that running processes have loaded, a sentence a process.
std::vector<std::string> loaded_lines(const Root& root, const Survey& survey);

}  // namespace tracefire::doctor
