// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/base/text.h"
#include "tools/monitor/judge/alerts.h"
#include "tools/monitor/judge/webhook.h"
#include "tools/monitor/show/escape.h"
#include "tools/monitor/show/format.h"
#include "tools/monitor/show/query_gpu.h"

namespace tracefire::monitor {
namespace {

std::string shown(const std::string& value) {
  return "'" + escape(value.substr(0, 100), Sink::kLog) + "'";
}

Status flag(bool& target) {
  target = true;
  return {};
}

template <class T>
Status number(const char* name, const std::string& text, T least, T most, T* target) {
  T value{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || value < least ||
      value > most) {
    return error(ErrorCode::kBadUsage, name, ": ", shown(text), " is not a whole number from ",
                 least, " to ", most, ".");
  }
  *target = value;
  return {};
}

Status set_time(const char* name, const std::string& text, std::chrono::milliseconds* target) {
  const Result<std::chrono::milliseconds> time = parse_time(text);
  if (!time.ok()) return time.status().prefixed(name);
  *target = *time;
  return {};
}

/// An index, a PCI address, or the UUID of a GPU or MIG instance as NVML writes it.
bool names_gpu(const std::string& name) {
  const bool uuid = name.rfind("GPU-", 0) == 0 || name.rfind("MIG-", 0) == 0;
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kHex = "0123456789abcdefABCDEF:.";
  const auto made_of = [&](std::string_view wanted) {
    return !name.empty() && name.size() <= 32 &&
           name.find_first_not_of(wanted) == std::string::npos;
  };
  return (made_of(kDigits) && name.size() < 10) ||
         (name.find(':') != std::string::npos && made_of(kHex)) ||
         (uuid && name.size() > 4 && name.size() <= 128 &&
          std::all_of(name.begin(), name.end(), [](unsigned char c) {
            return std::isalnum(c) != 0 || c == '-' || c == '/';
          }));
}

Status set_gpus(Options& o, const std::string& text) {
  o.gpus.clear();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    if (!names_gpu(name)) {
      return error(ErrorCode::kBadUsage, "--gpus was given ", shown(text), ", where ", shown(name),
                   " is no index, UUID or PCI address. Expected a list such as 0,2 or GPU-4e2f….");
    }
    o.gpus.push_back(name);
    begin = end + 1;
  }
  return {};
}

Status set_serve(Options& o, const std::string& text) {
  o.serve = true;
  return text.empty() ? Status() : parse_address(text, &o.host, &o.port);
}

Status set_alerts(Options& o, const std::string& text) {
  TF_ASSIGN(o.alerts, parse_alerts(text));
  return {};
}

Status set_webhook(Options& o, const std::string& text) {
  o.webhook = text;
  return parse_webhook(text).status();
}

Status set_log_size(Options& o, const std::string& text) {
  const Result<uint64_t> bytes = parse_bytes(text);
  if (!bytes.ok()) return bytes.status().prefixed("--log-size");
  o.log_bytes = *bytes;
  o.log_rotation = true;
  return {};
}

Status set_duration(Options& o, const std::string& text) {
  std::chrono::milliseconds time{};
  TF_RETURN_IF_ERROR(set_time("--duration", text, &time));
  o.duration = time;
  return {};
}

Status set_count(Options& o, const std::string& text) {
  uint64_t count = 0;
  TF_RETURN_IF_ERROR(number<uint64_t>("--count", text, 1, 1'000'000'000, &count));
  o.count = count;
  return {};
}

using O = Options;
using S = const std::string;
constexpr OptionRow kRows[] = {
    {"what to show", "--once", "", "", false, false,
     "looks once (two samples, half a second apart), prints and ends",
     [](O& o, S&) { return flag(o.once); }},
    {"what to show", "--json", "", "", false, false,
     "prints JSON (schema tracefire.monitor/1); without --once one line a sample",
     [](O& o, S&) { return flag(o.json); }},
    {"what to show", "--csv", "", "", false, false,
     "prints CSV, one line a GPU; without --once the lines of every sample",
     [](O& o, S&) { return flag(o.csv); }},
    {"what to show", "--metrics", "", "", false, false,
     "prints metrics once in Prometheus text format, for a textfile collector",
     [](O& o, S&) { return flag(o.metrics); }},
    {"what to show", "--gpus", ",-i,--id", "LIST", false, false,
     "only these GPUs: indices or UUIDs, separated by commas", set_gpus},
    {"what to show", "--query-gpu", "", "FIELDS", false, false,
     "nvidia-smi's fields and columns: timestamp,name,utilization.gpu",
     [](O& o, S& v) {
       o.query = v;
       return parse_query(v).status();
     }},
    {"what to show", "--format", "", "FORMAT", false, false,
     "with --query-gpu: csv, and noheader and nounits where wanted",
     [](O& o, S& v) {
       o.format = v;
       return parse_query_format(v).status();
     }},
    {"what to show", "--help-query-gpu", "", "", false, false, "lists the fields of --query-gpu",
     [](O& o, S&) { return flag(o.query_help); }},
    {"what to show", "--read-only", "", "", false, false,
     "takes from the live view the keys that end processes",
     [](O& o, S&) { return flag(o.read_only); }},
    {"when", "--every", ",-l,--loop", "TIME", false, false,
     "time between samples: 500ms, 10s, 2m (default 1s)",
     [](O& o, S& v) { return set_time("--every", v, &o.every); }},
    {"when", "--duration", "", "TIME", false, false, "ends after this time", set_duration},
    {"when", "--count", "", "N", false, false, "ends after this many samples", set_count},
    {"log", "--log", "", "FILE", false, false,
     "appends every sample to a file, as JSON lines where its name ends in .jsonl, else as CSV",
     [](O& o, S& v) {
       o.log = v;
       return v.empty() ? error(ErrorCode::kBadUsage, "--log: the name of the file is empty.")
                        : Status();
     }},
    {"log", "--log-size", "", "BYTES", false, false,
     "rotates the log at this size: 50MB, 64MiB (default 50MB)", set_log_size},
    {"log", "--log-keep", "", "N", false, false, "how many rotated files are kept (default 5)",
     [](O& o, S& v) {
       o.log_rotation = true;
       return number("--log-keep", v, 0, 1000, &o.log_keep);
     }},
    {"server", "--serve", "", "ADDRESS", true, false,
     "serves the web page and /metrics at PORT, HOST or HOST:PORT (default 127.0.0.1:9422)",
     set_serve},
    {"server", "--allow-host", "", "NAME", false, true,
     "a further name by which browsers may call the server; may be repeated",
     [](O& o, S& v) {
       o.allowed_hosts.push_back(v);
       return Status();
     }},
    {"server", "--dcgm-names", "", "", false, false,
     "also exports the metrics under the names of NVIDIA's DCGM exporter",
     [](O& o, S&) { return flag(o.dcgm_names); }},
    {"alerts", "--alerts", "", "LIST", false, false,
     "reports these alerts on stderr: all, or names such as low_utilization,xid_error", set_alerts},
    {"alerts", "--webhook", "", "URL", false, false,
     "sends each alert as JSON to this http:// address by POST", set_webhook},
    {"alerts", "--fail-on-alert", "", "", false, false,
     "ends with exit status 3 at the first alert", [](O& o, S&) { return flag(o.fail_on_alert); }},
};

constexpr UsageExample kExamples[] = {
    {"tracefire monitor", "The live view; h shows its keys."},
    {"tracefire monitor --once --json | jq '.gpus[].health'",
     "How well each GPU is used, and why."},
    {"tracefire monitor --log gpu.csv --every 10s", "A log that is rotated at 50 MB."},
    {"tracefire monitor --serve", "Charts at http://127.0.0.1:9422/, metrics at /metrics."},
    {"tracefire monitor --alerts all --fail-on-alert --duration 10m",
     "In a job script: exit status 3 where a GPU idles, heats up or fails."},
    {"tracefire monitor --query-gpu=timestamp,name,utilization.gpu,memory.used --format=csv",
     "The columns of nvidia-smi."},
};

}  // namespace

std::span<const OptionRow> option_rows() { return kRows; }
std::span<const UsageExample> usage_examples() { return kExamples; }

Result<std::chrono::milliseconds> parse_time(const std::string& text) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end.ptr, text.data() + text.size());
  double milliseconds = -1;
  if (end.ec == std::errc() && std::isfinite(value)) {
    if (unit == "ms") milliseconds = value;
    if (unit == "s" || unit.empty()) milliseconds = value * 1e3;
    if (unit == "m" || unit == "min") milliseconds = value * 60e3;
    if (unit == "h") milliseconds = value * 3600e3;
  }
  if (!(milliseconds >= 50 && milliseconds <= 24 * 3600e3)) {
    return error(ErrorCode::kBadUsage, ": ", shown(text),
                 " is no time from 50ms to 24h. Expected a form like 500ms, 10s, 2m or 1h.");
  }
  return std::chrono::milliseconds(static_cast<int64_t>(milliseconds));
}

Result<uint64_t> parse_bytes(const std::string& text) {
  static constexpr struct {
    const char* unit;
    double factor;
  } kUnits[] = {{"", 1},     {"B", 1},      {"kB", 1e3},      {"KB", 1e3},           {"MB", 1e6},
                {"GB", 1e9}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824.0}, {"k", 1e3},
                {"M", 1e6},  {"G", 1e9}};
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end.ptr, text.data() + text.size());
  for (const auto& known : kUnits) {
    if (end.ec != std::errc() || unit != known.unit) continue;
    const double bytes = value * known.factor;
    if (bytes >= 1000 && bytes <= 1e15) return static_cast<uint64_t>(bytes);
  }
  return error(ErrorCode::kBadUsage, ": ", shown(text),
               " is no size from 1kB to 1000TB. Expected a form like 50MB, 64MiB or 1GB.");
}

Status parse_address(const std::string& text, std::string* host, int* port) {
  std::string h = text;
  std::string p;
  const size_t bracket = text.rfind(']');
  const size_t colon = text.rfind(':');
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    p = text;
    h.clear();
  } else if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) {
    h = text.substr(0, colon);
    p = text.substr(colon + 1);
  }
  if (h.size() >= 2 && h.front() == '[' && h.back() == ']') h = h.substr(1, h.size() - 2);
  if (!h.empty()) *host = h == "localhost" ? "127.0.0.1" : h;
  return p.empty() ? Status() : number("--serve", p, 0, 65535, port);
}

Status check_options(Options& o) {
  const auto both = [](const char* a, const char* b) {
    return error(ErrorCode::kBadUsage, a, " and ", b, " do not go together. Leave one out.");
  };
  if (o.json && o.csv) return both("--json", "--csv");
  if (o.metrics && (o.json || o.csv)) return both("--metrics", "--json or --csv");
  if (o.query_help &&
      (o.json || o.csv || o.metrics || o.serve || !o.query.empty() || !o.log.empty())) {
    return both("--help-query-gpu", "any other output");
  }
  if (o.once && o.serve) return both("--once", "--serve");
  if (o.once && !o.log.empty()) return both("--once", "--log");
  if (o.metrics && (o.serve || !o.log.empty())) return both("--metrics", "--serve or --log");
  if ((o.json || o.csv) && (o.serve || !o.log.empty())) {
    return both("--json or --csv, which print samples,", "--serve or --log, which print none,");
  }
  const bool looks_on = o.count || o.duration || o.every != Options{}.every;
  if ((o.once || o.metrics) && looks_on) {
    return both("--once or --metrics", "--every, --count or --duration");
  }
  if (!o.query.empty() && (o.json || o.csv || o.metrics || o.serve || !o.log.empty())) {
    return both("--query-gpu", "--json, --csv, --metrics, --log or --serve");
  }
  if (!o.query.empty() && o.format.empty()) {
    return error(ErrorCode::kBadUsage,
                 "--query-gpu needs --format=csv[,noheader][,nounits], as nvidia-smi does.");
  }
  if (o.query.empty() && !o.format.empty()) {
    return error(ErrorCode::kBadUsage, "--format goes with --query-gpu=FIELDS only.");
  }
  const auto alone = [](const char* option, const char* with) {
    return error(ErrorCode::kBadUsage, option, " goes with ", with, " only.");
  };
  if (o.log_rotation && o.log.empty()) return alone("--log-size or --log-keep", "--log FILE");
  if (!o.allowed_hosts.empty() && !o.serve) return alone("--allow-host", "--serve");
  if (o.read_only &&
      (o.once || o.json || o.csv || o.metrics || o.serve || !o.query.empty() || !o.log.empty())) {
    return alone("--read-only", "the live view");
  }
  if (o.dcgm_names && !o.serve && !o.metrics) return alone("--dcgm-names", "--serve or --metrics");
  if ((!o.webhook.empty() || o.fail_on_alert) && o.alerts.empty()) {
    for (int i = 0; i < health::kAlertCount; ++i) o.alerts.insert(static_cast<health::Alert>(i));
  }
  return {};
}

}  // namespace tracefire::monitor
