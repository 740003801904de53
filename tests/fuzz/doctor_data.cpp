// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any text as the tables of `doctor --data`. What is refused says why; what is
// taken is asked for a GPU, a release and its rules. A row of a wrong type is an exception that the
// program answers, never more.
#include <cstdlib>

#include "tools/doctor/derive.h"
#include "tools/doctor/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  static const Data kData;
  Data tables = kData;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    if (!tables.merge(text).empty()) return 0;
    for (const char* name : {"tensorflow", "torch", "jax"}) tables.release(name, "2.20.1");
    tables.capability_of_name("NVIDIA GeForce RTX 3090");
    tables.capability_of_pci("0x2204");
    tables.arch("8.6");
    tables.data_center("Tesla V100");
    tables.driver_floor("12.5", false);
    Machine machine;
    machine.log = machine.dmesg = "NVRM: Xid (PCI:0000:01:00): 79, pid=1\nfailed call to cuInit";
    Facts facts;
    log_facts(machine, tables, &facts);
    measured_facts(machine, tables, &facts);
    command_facts(machine, tables, &facts);
    for (const char* scope : {"machine", "environment", "framework"})
      settle(apply_rules(tables, scope, facts, "/opt/venv", "torch"));
  } catch (const std::exception&) {
    return 0;
  }
  return 0;
}
