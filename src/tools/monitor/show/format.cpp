// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/show/format.h"

#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <iterator>

namespace tracefire::monitor {
namespace {

constexpr int64_t kMicro = 1'000'000;

std::string scaled(double value, double step, const char* const* units, size_t count) {
  size_t i = 0;
  while (value >= step && i + 1 < count) {
    value /= step;
    ++i;
  }
  return print(i == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, units[i]);
}

}  // namespace

std::string print(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string time_text(int64_t unix_us) {
  const std::time_t seconds = unix_us / kMicro;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return print("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900, utc.tm_mon + 1,
               utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
               static_cast<int>(unix_us % kMicro / 1000));
}

std::string smi_time_text(int64_t unix_us) {
  const std::time_t seconds = unix_us / kMicro;
  std::tm local{};
  localtime_r(&seconds, &local);
  return print("%04d/%02d/%02d %02d:%02d:%02d.%03d", local.tm_year + 1900, local.tm_mon + 1,
               local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
               static_cast<int>(unix_us % kMicro / 1000));
}

std::string clock_text(int64_t unix_us) { return time_text(unix_us).substr(11, 8); }

std::string span_text(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  if (whole < 120) return print("%lld s", whole);
  const long long minutes = whole / 60;
  if (minutes < 120) return print("%lld min", minutes);
  if (minutes < 48 * 60) return print("%lld h %lld min", minutes / 60, minutes % 60);
  return print("%lld d %lld h", minutes / 1440, minutes / 60 % 24);
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(bytes, 1024, kUnits, std::size(kUnits));
}

std::string rate_text(double bytes_per_second) {
  static constexpr const char* kUnits[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return scaled(bytes_per_second, 1000, kUnits, std::size(kUnits));
}

}  // namespace tracefire::monitor
