// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "health_table.h"

namespace tracefire::monitor {

/// Ports that are used where none is given. docs/monitor.md lists them.
inline constexpr int kDefaultPort = 9422;

enum class ColorChoice { kAuto, kAlways, kNever };

struct Options {
  bool once = false;
  bool json = false;
  bool csv = false;
  bool metrics = false;  ///< Prometheus text on stdout
  bool dcgm_names = false;
  bool read_only = false;      ///< the live view cannot end processes
  bool fail_on_alert = false;  ///< exit status 3 at the first alert
  std::chrono::milliseconds every{1000};
  std::optional<std::chrono::milliseconds> duration;
  std::optional<uint64_t> count;
  std::vector<std::string> gpus;  ///< indices or UUIDs; empty for all

  std::string log;
  bool log_rotation = false;  ///< one of the next two was given
  uint64_t log_bytes = 50'000'000;
  int log_keep = 5;

  bool serve = false;
  std::string host = "127.0.0.1";
  int port = kDefaultPort;
  std::vector<std::string> allowed_hosts;  ///< further names by which the server may be called

  std::set<health::Alert> alerts;
  std::string webhook;

  std::string query;
  std::string format;
  bool query_help = false;

  ColorChoice color = ColorChoice::kAuto;
};

/// One option: what the command line, its help and the manual are made of.
struct OptionRow {
  const char* group;
  const char* name;     ///< "--every"
  const char* aliases;  ///< ",-l,--loop": further names; "" for none
  const char* value;    ///< "TIME"; "" for a flag
  bool optional_value;  ///< --serve may stand alone
  bool repeated;        ///< may be given more than once
  const char* help;
  /// Errors: kBadUsage, which says what was expected.
  Status (*set)(Options& options, const std::string& value);
};
std::span<const OptionRow> option_rows();

/// What does not go together, and alerts that a webhook needs. Errors: kBadUsage.
Status check_options(Options& options);

struct UsageExample {
  const char* command;
  const char* words;
};
std::span<const UsageExample> usage_examples();

/// "500ms", "10s", "2m", "1h" or a number of seconds; at least 50 ms, at most a day.
Result<std::chrono::milliseconds> parse_time(const std::string& text);
/// "50MB", "64MiB", "1GB" or a number of bytes.
Result<uint64_t> parse_bytes(const std::string& text);
/// "9422", "0.0.0.0:9422", "[::1]:9422", "0.0.0.0".
Status parse_address(const std::string& text, std::string* host, int* port);

}  // namespace tracefire::monitor
