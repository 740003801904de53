// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/plan.h"
namespace tracefire::doctor {
Report make_plan(const Root&, const Data&, Machine, const std::string&, const std::string&,
                 const std::string&) {
  return {};
}
}  // namespace tracefire::doctor
