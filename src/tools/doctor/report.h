// SPDX-License-Identifier: Apache-2.0
//
// The answer, and its three forms.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/rules.h"
#include "tools/text/layout.h"

namespace tracefire::doctor {

struct Report {
  std::string verdict;  ///< "gpu-ok", "gpu-broken", "gpu-degraded", "cpu-only"
  std::string summary;
  std::vector<std::string> inventory;
  std::vector<Finding> findings;
};

/// 0, 1, 3, 4 for gpu-ok, gpu-broken, gpu-degraded, cpu-only.
int exit_code(const Report& report);
/// Passes every text through printable() and redacted(); the renderers take the result.
Report made_safe(Report report);
/// Without a width each sentence is one line, which is found again in the JSON.
std::string as_text(const Report& report, const text::Look& look = {});
std::string as_json(const Report& report);
std::string as_html(const Report& report);

}  // namespace tracefire::doctor
