// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tracefire::report {

/// A JSON string of outside text, quotes included.
std::string quoted(const std::string& text);

/// Trace events as JSON, which Perfetto and chrome://tracing open. Times in nanoseconds.
class TraceEvents {
 public:
  explicit TraceEvents(size_t most) : left_(most) {}

  /// Names a process or thread: what is "process_name" or "thread_name".
  void name(const char* what, uint32_t pid, uint64_t tid, const std::string& text);
  void slice(uint32_t pid, uint64_t tid, const std::string& quoted_name, uint64_t start_ns,
             uint64_t end_ns);
  void counter(uint32_t pid, const std::string& quoted_name, uint64_t at_ns, double value,
               const char* unit = "percent");
  /// False once the number of slices is used up.
  bool take() { return left_ > 0 && left_-- > 0; }
  std::string finish() const;

 private:
  void begin();
  std::string out_;
  size_t left_;
};

}  // namespace tracefire::report
