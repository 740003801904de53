// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any text as what nvidia-smi printed.
#include "tools/doctor/read/smi.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  parse_smi_csv(text);
  parse_smi_q(text);
  parse_smi_list(text);
  parse_smi_table(text);
  return 0;
}
