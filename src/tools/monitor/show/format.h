// SPDX-License-Identifier: Apache-2.0
// Numbers and times as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace tracefire::monitor {

/// "2026-11-30T14:05:09.123Z" (RFC 3339, UTC).
std::string time_text(int64_t unix_us);
/// "2026/11/30 14:05:09.123" in local time, as nvidia-smi prints it.
std::string smi_time_text(int64_t unix_us);
/// "14:05:09".
std::string clock_text(int64_t unix_us);
/// "93.2 GiB".
std::string bytes_text(double bytes);
/// "1.2 GB/s".
std::string rate_text(double bytes_per_second);
/// "45 s", "12 min", "3 h 20 min", "5 d 4 h".
std::string span_text(double seconds);
/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string print(const char* format, ...);

}  // namespace tracefire::monitor
