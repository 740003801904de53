// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any text as what package managers and frameworks wrote.
#include "tools/doctor/read/packages.h"
#include "tools/doctor/version.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::string& line : parse_metadata(text).requires_dist) parse_requirement(line);
  Requirement requirement = parse_requirement(text);
  meets("2.20.1rc1", requirement.conditions);
  compare_versions(text, "1.2");
  parse_record(text, 1000);
  parse_conda_meta(text);
  parse_dpkg_status(text, {"lib"});
  parse_assignments(text);
  parse_tensorflow_build(text);
  parse_torch_version(text);
  parse_kernel_argv(text);
  parse_cuda_version(text);
  parse_cudnn_header(text);
  return 0;
}
