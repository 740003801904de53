// SPDX-License-Identifier: Apache-2.0
#include "core/base/settings.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/text.h"

extern char** environ;

namespace tracefire {
namespace {

constexpr std::string_view kPrefix = "TRACEFIRE_";

/// A parsed value: integer holds flags, integers and the number of a choice.
struct Parsed {
  int64_t integer = 0;
  double real = 0;
};

struct Cell {
  std::atomic<int64_t> integer{0};
  std::atomic<double> real{0};
};

int find_row(std::string_view name) {
  for (int i = 0; i < kSettingCount; ++i) {
    if (name == kSettingTable[i].name) return i;
  }
  return -1;
}

std::string upper(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

Status bad_value(const SettingRow& row, std::string_view value, const std::string& expected) {
  return error(ErrorCode::kBadSetting, "the setting ", row.name, " cannot be '",
               value.substr(0, 100), "'. ", expected, " was expected. ", row.doc);
}

std::string range_text(const SettingRow& row, const char* what) {
  std::string out = what;
  if (row.min > -1e299) out += " of at least " + concat_text(row.min);
  if (row.max < 1e299) out += concat_text(row.min > -1e299 ? " and" : " of", " at most ", row.max);
  if (*row.unit) out += concat_text(" (", row.unit, ")");
  return out;
}

bool in_range(const SettingRow& row, double value) { return value >= row.min && value <= row.max; }

Result<Parsed> parse_value(const SettingRow& row, std::string_view value) {
  Parsed out;
  const char* end = value.data() + value.size();
  switch (row.type) {
    case SettingType::kFlag:
      if (value == "true" || value == "1" || value == "on" || value == "yes") {
        out.integer = 1;
        return out;
      }
      if (value == "false" || value == "0" || value == "off" || value == "no") return out;
      return bad_value(row, value, "true or false (or 1, 0, on, off, yes, no)");
    case SettingType::kInteger: {
      auto [stop, failure] = std::from_chars(value.data(), end, out.integer);
      if (failure != std::errc() || stop != end || !in_range(row, double(out.integer))) {
        return bad_value(row, value, range_text(row, "A whole number"));
      }
      return out;
    }
    case SettingType::kReal: {
      auto [stop, failure] = std::from_chars(value.data(), end, out.real);
      if (failure != std::errc() || stop != end || !in_range(row, out.real)) {
        return bad_value(row, value, range_text(row, "A number"));
      }
      return out;
    }
    case SettingType::kChoice: {
      std::string_view rest = row.values;
      for (int64_t i = 0; !rest.empty(); ++i) {
        std::string_view one = rest.substr(0, rest.find('|'));
        if (one == value) {
          out.integer = i;
          return out;
        }
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      }
      return bad_value(row, value, concat_text("One of ", row.values));
    }
    case SettingType::kText:
      return out;
  }
  return out;
}

class Store {
 public:
  Store() { reset(); }

  Status set(int index, std::string_view value, SettingSource source) {
    TF_ASSIGN(Parsed parsed, parse_value(kSettingTable[index], value));
    size_t i = static_cast<size_t>(index);
    MutexLock lock(mutex_);
    if (source < sources_[i]) return {};
    sources_[i] = source;
    texts_[i] = std::string(value);
    cells_[i].integer.store(parsed.integer, std::memory_order_relaxed);
    cells_[i].real.store(parsed.real, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    return {};
  }

  void reset() {
    {
      MutexLock lock(mutex_);
      sources_.fill(SettingSource::kDefault);
      problems_.clear();
    }
    for (int i = 0; i < kSettingCount; ++i) {
      keep(set(i, kSettingTable[i].fallback, SettingSource::kDefault));
    }
    for (char** entry = environ; entry && *entry; ++entry) read_variable(*entry);
    reported_ = false;
  }

  /// Says what was wrong in the environment, once; it may need settings itself (the log level).
  void report() {
    if (reported_.load(std::memory_order_relaxed) || reported_.exchange(true)) return;
    std::vector<std::string> problems;
    {
      MutexLock lock(mutex_);
      problems.swap(problems_);
    }
    for (const std::string& text : problems) log_line(LogLevel::kError, text);
  }

  std::string text(int index) {
    MutexLock lock(mutex_);
    return texts_[static_cast<size_t>(index)];
  }
  SettingSource source(int index) {
    MutexLock lock(mutex_);
    return sources_[static_cast<size_t>(index)];
  }
  const Cell& cell(int index) const { return cells_[static_cast<size_t>(index)]; }
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  void keep(const Status& status) {
    if (status.ok()) return;
    MutexLock lock(mutex_);
    problems_.push_back(status.str());
  }

  void read_variable(std::string_view entry) {
    if (entry.substr(0, kPrefix.size()) != kPrefix) return;
    std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() == entry.size()) return;
    std::string_view value = entry.substr(name.size() + 1);
    for (int i = 0; i < kSettingCount; ++i) {
      std::string wanted = std::string(kPrefix) + upper(kSettingTable[i].name);
      if (wanted == name) {
        keep(set(i, value, SettingSource::kEnvironment)
                 .prefixed("environment variable " + std::string(name) + ": "));
      } else if (edit_distance(wanted, name.substr(0, 100)) == 1) {
        keep(error(ErrorCode::kBadSetting, "the environment variable ", name,
                   " belongs to no setting and has no effect. Did you mean ", wanted, "?"));
      }
    }
  }

  Mutex mutex_;
  std::array<Cell, kSettingCount> cells_;
  std::array<std::string, kSettingCount> texts_ TF_GUARDED_BY(mutex_);
  std::array<SettingSource, kSettingCount> sources_ TF_GUARDED_BY(mutex_);
  std::vector<std::string> problems_ TF_GUARDED_BY(mutex_);
  std::atomic<uint64_t> generation_{0};
  std::atomic<bool> reported_{false};
};

Store& store() {
  static Store* instance = new Store;  // never destroyed: read until the process ends
  instance->report();
  return *instance;
}

Status unknown(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SettingRow& row : kSettingTable) names.push_back(row.name);
  std::string closest = closest_name(name, names);
  return error(
      ErrorCode::kBadSetting, "no setting is called '", name.substr(0, 100), "'. ",
      closest.empty() ? "`tracefire settings` lists them all." : "Did you mean '" + closest + "'?");
}

}  // namespace

namespace settings::detail {
int64_t integer(int index) { return store().cell(index).integer.load(std::memory_order_relaxed); }
double real(int index) { return store().cell(index).real.load(std::memory_order_relaxed); }
std::string text(int index) { return store().text(index); }
}  // namespace settings::detail

Status set_setting(std::string_view name, std::string_view value, SettingSource source) {
  int index = find_row(name);
  if (index < 0) return unknown(name);
  return store().set(index, value, source);
}

const char* setting_source_name(SettingSource source) {
  switch (source) {
    case SettingSource::kDefault:
      return "default";
    case SettingSource::kSystemFile:
      return "system file";
    case SettingSource::kUserFile:
      return "user file";
    case SettingSource::kEnvironment:
      return "environment";
    case SettingSource::kFlag:
      return "flag";
    case SettingSource::kCall:
      return "call";
  }
  return "?";
}

Status check_setting(std::string_view name, std::string_view value) {
  int index = find_row(name);
  if (index < 0) return unknown(name);
  return parse_value(kSettingTable[index], value).status();
}

Result<std::string> setting_text(std::string_view name) {
  int index = find_row(name);
  if (index < 0) return unknown(name);
  return store().text(index);
}

Result<SettingSource> setting_source(std::string_view name) {
  int index = find_row(name);
  if (index < 0) return unknown(name);
  return store().source(index);
}

uint64_t settings_generation() { return store().generation(); }

void reset_settings() {
  store().reset();
  store().report();
}

}  // namespace tracefire
