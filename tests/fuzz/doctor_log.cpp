// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any bytes as a framework's log, the kernel's log and the tables of nvidia-smi,
// up to the facts that rules ask for.
#include "tools/doctor/derive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  static const Data kData;
  std::string text(reinterpret_cast<const char*>(data), size);
  Machine machine;
  machine.log = machine.dmesg = machine.smi_text = text;
  machine.smi_rows = parse_smi_csv(text);
  machine.smi_apps = machine.smi_rows;
  machine.smi_q = parse_smi_q(text);
  Facts facts;
  log_facts(machine, kData, &facts);
  measured_facts(machine, kData, &facts);
  return 0;
}
