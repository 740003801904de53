// SPDX-License-Identifier: Apache-2.0
// Reads a folder of records, and tells which of them are lost.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tools/inject/escape.h"
#include "tools/inject/records.h"

namespace tracefire::inject {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxWindowBytes = size_t{512} << 20;
constexpr size_t kMaxListBytes = size_t{4} << 20;
constexpr size_t kMaxProcesses = 4096;
constexpr size_t kMaxLines = 64;
constexpr std::string_view kTrace = ".sum";
constexpr std::string_view kWindows = ".win";
constexpr std::string_view kOperations = ".ops.json";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

void add(std::vector<std::string>& lines, const std::string& line) {
  if (lines.size() < kMaxLines) lines.push_back(line);
  if (lines.size() == kMaxLines) lines.back() = "and more that is lost";
}

std::string read_file(const fs::path& path, size_t limit, bool* whole) {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  const auto size = static_cast<size_t>(fs::file_size(path, ignored));
  *whole = !ignored && file && size <= limit;
  std::string text(std::min(ignored ? 0 : size, limit), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

/// Joins the executor's records with those of the same process; one that never started CUDA gets
/// a record of its own. A process may have become another program: then the later one is meant.
void attach(OpRecords&& ops, std::vector<ProcessRecord>& records) {
  ProcessRecord* of = nullptr;
  for (ProcessRecord& r : records) {
    if (r.pid != ops.pid || r.host != ops.host || r.ops ||
        r.first.real > ops.begun_ns + ops.wall_ns) {
      continue;
    }
    if (of == nullptr || r.first.real > of->first.real) of = &r;
  }
  if (of == nullptr) {
    ProcessRecord made;
    made.state = TraceState::kNoCuda;
    made.pid = ops.pid;
    made.parent = ops.parent;
    made.rank = ops.rank;
    made.ranks = ops.ranks;
    made.local_rank = ops.local_rank;
    made.host = ops.host;
    made.first.real = ops.begun_ns;
    made.now.real = ops.begun_ns + ops.wall_ns;
    made.cpu = ops.cpu_ns;
    made.clean_end = ops.clean_end;
    records.push_back(std::move(made));
    of = &records.back();
  }
  if (ops.programs.empty() && ops.rows.empty()) {
    of->idle_tracefire = true;  // another framework may have computed here
    return;
  }
  of->ops = std::make_shared<const OpRecords>(std::move(ops));
}

/// What is missing of the window file, whose bytes were read; empty where nothing is.
std::string missing_events(const ProcessRecord& r, size_t bytes) {
  if (bytes < r.window_bytes) {
    return concat_text("the window file has ", bytes, " bytes of ", r.window_bytes);
  }
  size_t events = 0;
  for (const WindowRow& w : r.windows) events += w.events.size();
  // What a killed process had not yet written is told by its missing end.
  if (!r.clean_end || events >= r.events) return "";
  return concat_text("the window file has ", events, " events of ", r.events);
}

void read_window_file(const fs::path& path, ProcessRecord& record) {
  bool whole = true;
  std::string bytes;
  std::error_code unknown;
  if (fs::is_regular_file(path, unknown)) bytes = read_file(path, kMaxWindowBytes, &whole);
  parse_windows(bytes, record);
  if (!record.damage.empty()) return;
  record.damage = whole ? missing_events(record, bytes.size()) : "the window file was read in part";
}

struct Folder {
  std::vector<fs::path> traces, operations, lists;
  std::set<std::string> names;
};

/// Files that processes began, by the lists of their hosts and by their windows, and that the
/// folder has not.
void miss_files(const Folder& folder, Damage* damage) {
  std::set<std::string> wanted;
  for (const fs::path& list : folder.lists) {
    bool whole = false;
    const std::string text = read_file(list, kMaxListBytes, &whole);
    const std::string name = printable(list.filename().string(), 80);
    if (!whole || (!text.empty() && text.back() != '\n')) {
      add(damage->traces, name + ": the list of records is torn");
    }
    for (size_t i = 0; i < text.size();) {
      const size_t end = std::min(text.find('\n', i), text.size());
      const std::string line = text.substr(i, end - i);
      i = end + 1;
      if (!line.empty()) wanted.insert(line);
    }
  }
  for (const std::string& name : folder.names) {
    if ((ends_with(name, kTrace) || ends_with(name, kOperations)) && wanted.count(name) == 0) {
      const size_t host = name.find('-');
      const std::string list =
          "processes-" + name.substr(std::min(host, name.size() - 1) + 1, 8) + ".txt";
      if (folder.names.count(list) != 0)
        add(damage->traces, printable(list, 80) + ": it has no " + printable(name, 80));
    }
    if (ends_with(name, kWindows)) {
      wanted.insert(name.substr(0, name.size() - kWindows.size()).append(kTrace));
    }
  }
  for (const std::string& name : wanted) {
    if (folder.names.count(name) != 0) continue;
    add(ends_with(name, kOperations) ? damage->operations : damage->traces,
        printable(name, 80) + " is missing: a process began it");
  }
}

Result<Folder> list_folder(const std::string& path) {
  Folder folder;
  std::error_code failed;
  for (fs::directory_iterator it(path, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    std::error_code unknown;
    if (!fs::is_regular_file(it->path(), unknown)) continue;  // opening a pipe would wait
    folder.names.insert(name);
    if (ends_with(name, kTrace)) folder.traces.push_back(it->path());
    if (ends_with(name, kOperations)) folder.operations.push_back(it->path());
    if (name.rfind("processes-", 0) == 0 && ends_with(name, ".txt")) {
      folder.lists.push_back(it->path());
    }
  }
  if (!failed) return folder;
  return error(ErrorCode::kFileNotFound, printable(path), " cannot be read: ", failed.message());
}

}  // namespace

std::string Damage::str() const {
  std::string text;
  for (const std::vector<std::string>* lines : {&traces, &operations}) {
    for (const std::string& line : *lines) text += (text.empty() ? "" : "; ") + line;
  }
  return text;
}

Result<std::vector<ProcessRecord>> read_records(const std::string& folder, Damage* damage) {
  TF_ASSIGN(Folder found, list_folder(folder));
  for (std::vector<fs::path>* list : {&found.traces, &found.operations, &found.lists}) {
    std::sort(list->begin(), list->end());
    if (list->size() <= kMaxProcesses) continue;
    add(damage->traces,
        concat_text("only ", kMaxProcesses, " of ", list->size(), " processes were read"));
    list->resize(kMaxProcesses);
  }
  miss_files(found, damage);
  const auto not_read = [](const fs::path& file, const Status& status) {
    return printable(file.filename().string(), 80) + ": " + status.message();
  };
  std::vector<ProcessRecord> records;
  for (const fs::path& file : found.traces) {
    bool whole = false;
    Result<ProcessRecord> record = parse_snapshot(read_file(file, kMaxSnapshotBytes + 1, &whole));
    if (!record.ok()) {
      add(damage->traces, not_read(file, record.status()));
      continue;
    }
    read_window_file(fs::path(file).replace_extension(".win"), *record);
    records.push_back(std::move(*record));
  }
  for (const fs::path& file : found.operations) {
    bool whole = false;
    Result<OpRecords> ops = parse_op_records(read_file(file, kMaxOpBytes + 1, &whole));
    if (ops.ok()) {
      attach(std::move(*ops), records);
    } else {
      add(damage->operations, not_read(file, ops.status()));
    }
  }
  std::stable_sort(
      records.begin(), records.end(),
      [](const ProcessRecord& a, const ProcessRecord& b) { return a.first.real < b.first.real; });
  return records;
}

}  // namespace tracefire::inject
