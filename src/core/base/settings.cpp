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
#include "core/base/settings_file.h"
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

std::string upper_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

/// TRACEFIRE_THREADS for threads.
std::string variable_of(std::string_view name) { return std::string(kPrefix) + upper_case(name); }

bool belongs_to_others(std::string_view variable) {
  for (std::string_view other : kOtherVariables) {
    const bool open = other.back() == '*';
    if (open) other.remove_suffix(1);
    if (open ? variable.substr(0, other.size()) == other : variable == other) return true;
  }
  return false;
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
        const bool huge = failure == std::errc::result_out_of_range;
        return bad_value(row, value,
                         range_text(row, huge ? "A 64-bit whole number" : "A whole number"));
      }
      return out;
    }
    case SettingType::kReal: {
      auto [stop, failure] = std::from_chars(value.data(), end, out.real);
      if (failure != std::errc() || stop != end || !in_range(row, out.real)) {
        const bool huge = failure == std::errc::result_out_of_range;
        return bad_value(row, value, range_text(row, huge ? "A 64-bit number" : "A number"));
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

Status unknown(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SettingRow& row : kSettingTable) names.push_back(row.name);
  std::string closest = closest_name(name, names);
  return error(
      ErrorCode::kBadSetting, "no setting is called '", name.substr(0, 100), "'. ",
      closest.empty() ? "`tracefire settings` lists them all." : "Did you mean '" + closest + "'?");
}

class Store {
 public:
  Store() { reset(); }

  /// `origin` is where the value stands: "environment variable TRACEFIRE_THREADS".
  Status set(int index, std::string_view value, SettingSource source, std::string origin) {
    const size_t i = static_cast<size_t>(index);
    TF_RETURN_IF_ERROR(check(index, value));
    TF_ASSIGN(Parsed parsed, parse_value(kSettingTable[index], value));
    MutexLock lock(mutex_);
    if (source < sources_[i]) return {};
    if (source == SettingSource::kCall) forget_problem(index);
    sources_[i] = source;
    const bool flag = kSettingTable[index].type == SettingType::kFlag;  // one word for "on", "1" …
    texts_[i] = flag ? (parsed.integer != 0 ? "true" : "false") : std::string(value);
    origins_[i] = std::move(origin);
    cells_[i].integer.store(parsed.integer, std::memory_order_relaxed);
    cells_[i].real.store(parsed.real, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    return {};
  }

  void observe(int index, SettingObserver observer) {
    observers_[static_cast<size_t>(index)] = observer;
  }
  void tell(int index) const {
    const SettingObserver observer = observers_[static_cast<size_t>(index)].load();
    if (observer != nullptr) observer();
  }

  Status check(int index, std::string_view value) const {
    TF_RETURN_IF_ERROR(parse_value(kSettingTable[index], value).status());
    const SettingCheck further = checks_[static_cast<size_t>(index)].load();
    return further == nullptr ? Status{} : further(value);
  }

  void add_check(int index, SettingCheck further) {
    const size_t i = static_cast<size_t>(index);
    checks_[i] = further;
    std::string text, origin;
    {
      MutexLock lock(mutex_);
      text = texts_[i];
      origin = origins_[i];
    }
    const Status status = further(text);
    if (status.ok()) return;
    keep_problem(index, status.prefixed(origin + ": "));
    set_default(index);
  }

  void reset() {
    {
      MutexLock lock(mutex_);
      problems_.clear();
      warnings_.clear();
      broken_ = false;
    }
    for (int i = 0; i < kSettingCount; ++i) set_default(i);
    for (const SettingsFile& file : settings_files()) read_file(file);
    for (char** entry = environ; entry && *entry; ++entry) read_variable(*entry);
    reported_ = false;
  }

  /// Says what deserves a line, once; it may need settings itself (the log level).
  void report() {
    if (reported_.load(std::memory_order_relaxed) || reported_.exchange(true)) return;
    std::vector<std::string> warnings;
    {
      MutexLock lock(mutex_);
      warnings.swap(warnings_);
    }
    for (const std::string& text : warnings) log_line(LogLevel::kWarning, text);
  }

  std::vector<Status> problems() {
    std::vector<Status> all;
    if (!broken_.load(std::memory_order_acquire)) return all;
    MutexLock lock(mutex_);
    for (const auto& [index, status] : problems_) all.push_back(status);
    return all;
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
  bool broken() const { return broken_.load(std::memory_order_acquire); }

 private:
  static constexpr int kWholeFile = -1;  // in the place of a setting's number

  void set_default(int index) {
    {
      MutexLock lock(mutex_);
      sources_[static_cast<size_t>(index)] = SettingSource::kDefault;
    }
    const Status never =
        set(index, kSettingTable[index].fallback, SettingSource::kDefault, "the default");
    if (!never.ok()) keep_problem(index, never);
  }

  void keep_problem(int index, const Status& status) {
    MutexLock lock(mutex_);
    problems_.emplace_back(index, status);
    broken_ = true;
  }

  void forget_problem(int index) TF_REQUIRES(mutex_) {
    std::erase_if(problems_, [&](const auto& problem) { return problem.first == index; });
    broken_ = !problems_.empty();
  }

  /// All of a file, or nothing where anything in it is wrong.
  void read_file(const SettingsFile& file) {
    std::string warning;
    const Result<std::vector<SettingLine>> lines = read_settings_file(file.path, &warning);
    if (!warning.empty()) {
      MutexLock lock(mutex_);
      warnings_.push_back(std::move(warning));
    }
    if (!lines.ok()) return keep_problem(kWholeFile, lines.status());
    for (const bool apply : {false, true}) {
      for (const SettingLine& line : *lines) {
        const std::string origin = concat_text(file.path, ":", line.line);
        const int index = find_row(line.name);
        const Status status = index < 0 ? unknown(line.name)
                              : apply   ? set(index, line.value, file.source, origin)
                                        : check(index, line.value);
        if (!status.ok()) return keep_problem(index, status.prefixed(origin + ": "));
      }
    }
  }

  void read_variable(std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() == entry.size() || belongs_to_others(name)) return;
    if (name.substr(0, kPrefix.size()) != kPrefix) return look_at_prefix(name);
    std::vector<std::string> variables;
    for (int i = 0; i < kSettingCount; ++i) {
      const std::string variable = variable_of(kSettingTable[i].name);
      variables.push_back(variable.substr(kPrefix.size()));
      if (variable != name) continue;
      const std::string origin = concat_text("environment variable ", name);
      const Status status =
          set(i, entry.substr(name.size() + 1), SettingSource::kEnvironment, origin);
      if (!status.ok()) keep_problem(i, status.prefixed(origin + ": "));
      return;
    }
    for (std::string_view other : kOtherVariables) {
      if (other.back() != '*') variables.emplace_back(other.substr(kPrefix.size()));
    }
    const std::string closest =
        closest_name(name.substr(kPrefix.size()), {variables.begin(), variables.end()});
    warn_of(name, closest.empty() ? "" : concat_text(kPrefix, closest));
  }

  /// TRACFIRE_THREADS and tracefire_threads: a setting behind a prefix that is nearly ours.
  void look_at_prefix(std::string_view name) {
    const std::string upper = upper_case(name.substr(0, 100));
    const size_t end = upper.find('_');
    if (end == std::string::npos) return;
    const std::string_view ours = kPrefix.substr(0, kPrefix.size() - 1);
    if (closest_name(upper.substr(0, end), {ours}).empty()) return;
    const std::string meant = concat_text(ours, upper.substr(end));
    for (const SettingRow& row : kSettingTable) {
      if (variable_of(row.name) == meant) return warn_of(name, meant);
    }
  }

  void warn_of(std::string_view name, const std::string& meant) {
    MutexLock lock(mutex_);
    warnings_.push_back(concat_text("the environment variable ", name.substr(0, 100),
                                    " belongs to no setting and has no effect. ",
                                    meant.empty() ? "`tracefire settings` lists them."
                                                  : concat_text("Did you mean ", meant, "?")));
  }

  Mutex mutex_;
  std::array<Cell, kSettingCount> cells_;
  std::array<std::atomic<SettingCheck>, kSettingCount> checks_{};
  std::array<std::atomic<SettingObserver>, kSettingCount> observers_{};
  std::array<std::string, kSettingCount> texts_ TF_GUARDED_BY(mutex_);
  std::array<std::string, kSettingCount> origins_ TF_GUARDED_BY(mutex_);
  std::array<SettingSource, kSettingCount> sources_ TF_GUARDED_BY(mutex_);
  std::vector<std::pair<int, Status>> problems_ TF_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ TF_GUARDED_BY(mutex_);
  std::atomic<bool> broken_{false};  // problems_ is not empty
  std::atomic<uint64_t> generation_{0};
  std::atomic<bool> reported_{false};
};

Store& store() {
  static Store* instance = new Store;  // never destroyed: read until the process ends
  instance->report();
  return *instance;
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
  TF_RETURN_IF_ERROR(store().set(index, value, source, setting_source_name(source)));
  store().tell(index);
  return {};
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
  return store().check(index, value);
}

void set_setting_check(std::string_view name, SettingCheck check) {
  const int index = find_row(name);
  if (index < 0) unknown(name).throw_if_error();  // a mistake of ours, seen at once
  store().add_check(index, check);
}

void observe_setting(std::string_view name, SettingObserver observer) {
  const int index = find_row(name);
  if (index < 0) unknown(name).throw_if_error();
  store().observe(index, observer);
}

Status settings_problem() {
  Store& all = store();
  if (!all.broken()) return {};
  const std::vector<Status> problems = all.problems();
  return problems.empty() ? Status{} : problems.front();
}

std::vector<Status> settings_problems() { return store().problems(); }

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
  for (int i = 0; i < kSettingCount; ++i) store().tell(i);
  store().report();
}

}  // namespace tracefire
