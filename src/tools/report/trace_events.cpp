// SPDX-License-Identifier: Apache-2.0
#include "tools/report/trace_events.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tracefire::report {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void TraceEvents::begin() {
  if (!out_.empty()) out_ += ",\n";
}

void TraceEvents::name(const char* what, uint32_t pid, uint64_t tid, const std::string& text) {
  begin();
  out_ += "{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\",\"pid\":" + std::to_string(pid) +
          ",\"tid\":" + std::to_string(tid) + ",\"args\":{\"name\":" + quoted(text) + "}}";
}

void TraceEvents::slice(uint32_t pid, uint64_t tid, const std::string& quoted_name,
                        uint64_t start_ns, uint64_t end_ns) {
  char numbers[128];
  std::snprintf(numbers, sizeof(numbers), ",\"ts\":%.3f,\"dur\":%.3f}",
                static_cast<double>(start_ns) / 1000,
                static_cast<double>(end_ns - start_ns) / 1000);
  begin();
  out_ += "{\"ph\":\"X\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) +
          ",\"name\":" + quoted_name + numbers;
}

void TraceEvents::counter(uint32_t pid, const std::string& quoted_name, uint64_t at_ns,
                          double value, const char* unit) {
  char numbers[128];
  std::snprintf(numbers, sizeof(numbers), ",\"ts\":%.3f,\"args\":{\"%s\":%.2f}}",
                static_cast<double>(at_ns) / 1000, unit, value);
  begin();
  out_ += "{\"ph\":\"C\",\"pid\":" + std::to_string(pid) + ",\"tid\":0,\"name\":" + quoted_name +
          numbers;
}

std::string TraceEvents::finish() const {
  return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" + out_ + "]}\n";
}

}  // namespace tracefire::report
