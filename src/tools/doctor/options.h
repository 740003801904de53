// SPDX-License-Identifier: Apache-2.0
//
// The command line of the doctor.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/doctor/plan_spec.h"
#include "tools/text/layout.h"

namespace tracefire::doctor {

enum class Form { kText, kJson, kHtml };

struct Options {
  bool plan = false;       ///< doctor plan: what fits, before anything is installed
  bool diff = false;       ///< doctor diff A B
  bool live_tests = true;  ///< --no-tests leaves them out
  Form form = Form::kText;
  std::string root, log, python, framework, framework_release, data, output, diff_a, diff_b;
  std::map<std::string, std::string> env;
  PlanSpec spec;      ///< of --framework, with plan
  text::Look look;    ///< of text on stdout
  std::string error;  ///< what is wrong with the arguments, "" where nothing is
};

Options parse_options(const std::vector<std::string>& arguments);

}  // namespace tracefire::doctor
