// SPDX-License-Identifier: Apache-2.0
//
// doctor plan: what fits this machine, before anything is installed.
#pragma once

#include "tools/doctor/survey.h"

namespace tracefire::doctor {

/// `release` may be "". The report's findings are what speaks against it; its first note is the
/// plan.
Report make_plan(const Root& root, const Data& data, Machine machine, const std::string& framework,
                 const std::string& release, const std::string& python);

}  // namespace tracefire::doctor
