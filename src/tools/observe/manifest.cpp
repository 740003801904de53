// SPDX-License-Identifier: Apache-2.0
#include "tools/report/manifest.h"

#include "core/base/settings.h"
#include "tracefire/config.h"
#include "tracefire/observe.h"

namespace tracefire {

std::string manifest(const ManifestFacts& facts) {
  settings_problem().throw_if_error();
  report::EngineFacts engine;
  for (const DeviceDescription& device : list_devices()) {
    if (device.device.kind != Device::kCpu) continue;
    engine.processor = device.name;
    engine.instructions = device.architecture;
    engine.memory_bytes = static_cast<uint64_t>(device.memory_bytes);
    break;
  }
  for (LibraryDescription& used : list_libraries()) {
    engine.libraries.push_back({std::move(used.name), std::move(used.version), std::move(used.path),
                                std::move(used.origin)});
  }
  engine.why_no_gpu = why_no_gpu();
  // What the proof says of the products so far; before any, what they would be computed with.
  engine.precision = proof().precision;
  if (engine.precision.empty() && !engine.why_no_gpu.empty()) engine.precision = "highest";
  return report::manifest({facts.commit, facts.seed, facts.all_libraries}, engine);
}

}  // namespace tracefire
