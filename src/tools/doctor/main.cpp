// SPDX-License-Identifier: Apache-2.0
//
// tracefire-doctor: the doctor alone, for machines that have no Tracefire.
#include <iostream>

#include "core/base/log.h"
#include "tools/doctor/doctor.h"

int main(int argc, char** argv) {
  for (const tracefire::Status& problem : tracefire::settings_problems()) {
    tracefire::log_line(tracefire::LogLevel::kWarning, problem.str());
  }
  const int status = tracefire::doctor::doctor_main(std::vector<std::string>(argv + 1, argv + argc),
                                                    std::cout, std::cerr);
  if (std::cout.flush()) return status;
  std::cerr << "tracefire doctor: standard output cannot be written.\n";
  return 1;
}
