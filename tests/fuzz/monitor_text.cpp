// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/monitor
//
// libFuzzer entry: any text as /proc/PID/cgroup and as the values of the monitor's options. A
// container's name has no control character.
#include <cstdlib>

#include "tools/monitor/judge/alerts.h"
#include "tools/monitor/options.h"
#include "tools/monitor/sample/process_info.h"
#include "tools/monitor/show/query_gpu.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::monitor;
  const std::string text(reinterpret_cast<const char*>(data), size);
  container_of(text);
  (void)parse_alerts(text);
  (void)parse_query_format(text);
  if (const auto time = parse_time(text); time.ok() && time->count() < 50) std::abort();
  (void)parse_bytes(text);
  std::string host;
  int port = 0;
  if (parse_address(text, &host, &port).ok() && (port < 0 || port > 65535)) std::abort();
  return 0;
}
