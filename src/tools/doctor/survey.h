// SPDX-License-Identifier: Apache-2.0
//
// From a tree to a report: reads, derives facts, applies rules, joins the verdicts.
#pragma once

#include "tools/doctor/derive_request.h"
#include "tools/doctor/report.h"

namespace tracefire::doctor {

struct Question {
  std::string python;     ///< --python
  std::string framework;  ///< --framework
  std::string release;    ///< "2.18" of --framework tensorflow==2.18
};

/// Everything that was found.
struct Survey {
  Machine machine;
  std::vector<Surveyed> environments;
  Facts facts;  ///< of the machine
};

/// `machine` is read_machine()'s, perhaps with what was measured live.
Survey make_survey(const Root& root, const Data& data, Machine machine, const Question& question);
Report make_report(const Root& root, const Data& data, const Survey& survey,
                   const Question& question, std::vector<Finding> live_findings = {},
                   std::vector<std::string> live_lines = {});

}  // namespace tracefire::doctor
