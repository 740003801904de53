// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any text as looks of nvidia-smi at a GPU, and as a report of prove or of the
// monitor.
#include <cstdlib>

#include "tools/doctor/derive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  Machine machine;
  machine.use_report.assign(reinterpret_cast<const char*>(data), size);
  machine.smi_samples = parse_smi_csv(machine.use_report);
  machine.smi_rows = latest_rows(machine.smi_samples);
  if (machine.smi_rows.size() > machine.smi_samples.size()) std::abort();
  machine.smi_apps = machine.smi_rows;
  Facts facts;
  use_facts(machine, &facts);
  return 0;
}
