// SPDX-License-Identifier: Apache-2.0
//
// doctor plan: what fits this machine, before anything is installed.
#pragma once

#include "tools/doctor/plan_spec.h"
#include "tools/doctor/survey.h"

namespace tracefire::doctor {

/// `framework` is tensorflow, torch, jax or keras. The report's findings are what speaks against
/// the release that was asked for, a layer each; its note "plan" says what fits, with the command.
Report make_plan(const Root& root, const Data& data, Machine machine, const std::string& framework,
                 const PlanSpec& spec, const std::string& python);

}  // namespace tracefire::doctor
