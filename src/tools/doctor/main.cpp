// SPDX-License-Identifier: Apache-2.0
//
// tracefire-doctor: the doctor alone, for machines that have no Tracefire.
#include <iostream>

#include "tools/doctor/doctor.h"

int main(int argc, char** argv) {
  return tracefire::doctor::doctor_main(std::vector<std::string>(argv + 1, argv + argc), std::cout,
                                        std::cerr);
}
