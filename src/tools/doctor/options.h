// SPDX-License-Identifier: Apache-2.0
//
// The command line of the doctor.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/doctor/plan_spec.h"

namespace tracefire::doctor {

enum class Form { kText, kJson, kHtml };

struct Options {
  bool plan = false;  ///< doctor plan: what fits, before anything is installed
  bool diff = false;  ///< doctor diff A B
  bool help = false;
  bool live_tests = true;  ///< --no-tests leaves them out
  Form form = Form::kText;
  std::string root, log, python, framework, framework_release, data, output, diff_a, diff_b;
  std::map<std::string, std::string> env;
  PlanSpec spec;      ///< of --framework, with plan
  std::string error;  ///< what is wrong with the arguments, "" where nothing is
};

Options parse_options(const std::vector<std::string>& arguments);
/// The text of --help.
std::string usage();

}  // namespace tracefire::doctor
