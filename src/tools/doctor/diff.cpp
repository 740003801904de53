// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/diff.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "tools/doctor/live/live.h"
#include "tools/doctor/streams.h"
#include "tools/doctor/survey.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"
#include "tools/text/redact.h"

namespace tracefire::doctor {

namespace {

/// "9.3" and "9.3.0.75" tell the same as far as both tell.
bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  if (!is_version(a) || !is_version(b) || !contains(a, ".") || !contains(b, ".")) return false;
  const std::string &little = a.size() < b.size() ? a : b, &great = a.size() < b.size() ? b : a;
  return great.rfind(little + ".", 0) == 0;
}

bool is_manifest(const Snapshot& snapshot) { return snapshot.form == "manifest"; }

bool has_key(const Snapshot& snapshot, std::string_view begin) {
  auto it = snapshot.values.lower_bound(std::string(begin));
  return it != snapshot.values.end() && it->first.rfind(begin, 0) == 0;
}

/// An image of a container has packages, but neither the kernel's files nor a GPU.
bool knows_devices(const Snapshot& snapshot) {
  if (snapshot.form == "machine") return true;
  for (const char* key : {"GPU ", "driver", "kernel"})
    if (has_key(snapshot, key)) return true;
  auto nodes = snapshot.values.find("device nodes");
  return nodes != snapshot.values.end() && nodes->second != "none";
}

/// Whether a snapshot of that form would tell of it if it were there.
bool tells(const Snapshot& snapshot, const std::string& key) {
  auto begins = [&](std::string_view text) { return key.rfind(text, 0) == 0; };
  if (begins("GPU ")) {
    // Of a GPU that it names it tells what it knows; a GPU that it does not name is not there.
    const size_t space = key.find(' ', 4);
    const bool named = space != key.npos && has_key(snapshot, key.substr(0, space + 1));
    return !named && (is_manifest(snapshot) ? has_key(snapshot, "GPU ") : knows_devices(snapshot));
  }
  if (is_manifest(snapshot)) return begins("setting ") && has_key(snapshot, "setting ");
  if (begins("variable ")) return snapshot.form != "tree";  // a tree has no environment
  if (begins("driver") || begins("container") || begins("MIG") || begins("device nodes"))
    return knows_devices(snapshot);
  return begins("package ") || begins("library ") || begins("toolkit ") ||
         begins("system package ");
}

/// What is compared only where both know of devices: an image runs on another machine.
bool of_devices(const std::string& key) {
  return key == "verdict" || key == "faults" || key == "device nodes";
}

const Json* row_of(const Json& rows, const std::string& key, size_t* rank) {
  *rank = 0;
  // Of several GPUs each counts like the first.
  if (key.rfind("GPU ", 0) == 0 && key.size() > 5 && key[4] >= '0' && key[4] <= '9')
    if (size_t space = key.find(' ', 4); space != key.npos && key.rfind("GPU 0 ", 0) != 0)
      return row_of(rows, "GPU 0" + key.substr(space), rank);
  if (!rows.is_array()) return nullptr;
  for (const Json& row : rows) {
    for (const std::string& begin : texts_of(row, "begins"))
      if (key.rfind(begin, 0) == 0) return &row;
    ++*rank;
  }
  return nullptr;
}

std::string shown(const std::string& value) { return value.empty() ? "(none)" : value; }

Json side(const Snapshot& snapshot) {
  return {{"source", snapshot.source},
          {"form", snapshot.form},
          {"environment",
           snapshot.environment.empty() ? Json() : Json(printable(snapshot.environment))}};
}

bool changes(const Difference& one, const char* what) {
  return std::find(one.changes.begin(), one.changes.end(), what) != one.changes.end();
}

std::string summary(const std::vector<Difference>& found) {
  size_t results = 0, speed = 0;
  for (const Difference& one : found) {
    results += changes(one, "results");
    speed += changes(one, "speed");
  }
  if (found.empty()) return "The two are the same in all that both tell.";
  std::string out =
      std::to_string(found.size()) + (found.size() == 1 ? " difference: " : " differences: ");
  out += results == 0 ? "none can change results, "
                      : std::to_string(results) + " can change results, ";
  return out +
         (speed == 0 ? "none can change speed." : std::to_string(speed) + " can change speed.");
}

std::string effect(const Difference& one) {
  bool results = changes(one, "results"), speed = changes(one, "speed");
  return results && speed ? "results, speed" : results ? "results" : speed ? "speed" : "neither";
}

}  // namespace

std::vector<Difference> compare(const Snapshot& a, const Snapshot& b, const Data& data,
                                std::vector<std::string>* untold) {
  std::map<std::string, std::pair<std::string, std::string>> all;
  for (const auto& [key, value] : a.values) all[key].first = value;
  for (const auto& [key, value] : b.values) all[key].second = value;
  std::vector<Difference> out;
  const Json& table = data.diff();
  const Json none = Json::array();
  const Json& rows = table.contains("rows") ? table["rows"] : none;
  for (const auto& [key, values] : all) {
    bool in_a = a.values.count(key) != 0, in_b = b.values.count(key) != 0;
    if (in_a && in_b && same_value(values.first, values.second)) continue;
    if (of_devices(key) && (!knows_devices(a) || !knows_devices(b))) {
      untold->push_back(key);
      continue;
    }
    if ((!in_a && !tells(a, key)) || (!in_b && !tells(b, key))) {
      untold->push_back(key);
      continue;
    }
    Difference one;
    one.name = key;
    one.a = values.first;
    one.b = values.second;
    const Json* row = row_of(rows, key, &one.rank);
    if (row != nullptr) {
      one.changes = texts_of(*row, "changes");
      one.why = text_of(*row, "why");
    }
    out.push_back(std::move(one));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Difference& x, const Difference& y) { return x.rank < y.rank; });
  return out;
}

std::string diff_text(const Snapshot& a, const Snapshot& b, const std::vector<Difference>& found,
                      const std::vector<std::string>& untold, const text::Look& look) {
  using text::Style;
  const auto bold = [&](const std::string& text) {
    return text::styled(Style::kBold, text, look.color);
  };
  std::string out = bold(summary(found)) + "\n  A  " + printable(a.source) + " (" + a.form +
                    ")\n  B  " + printable(b.source) + " (" + b.form + ")\n";
  struct Group {
    const char* title;
    bool (*holds)(const Difference&);
  };
  const Group groups[] = {
      {"Can change results", [](const Difference& one) { return changes(one, "results"); }},
      {"Can change speed, not results",
       [](const Difference& one) { return !changes(one, "results") && changes(one, "speed"); }},
      {"Neither", [](const Difference& one) { return one.changes.empty(); }}};
  for (const Group& group : groups) {
    bool any = false;
    std::string why;
    for (const Difference& one : found) {
      if (!group.holds(one)) continue;
      if (!any) out += "\n" + bold(group.title) + "\n";
      any = true;
      if (one.why != why && !one.why.empty())
        out += text::paragraph(printable(one.why), look.width, "  ");
      why = one.why;
      out += text::paragraph(
          printable(one.name) + ": " + printable(shown(one.a)) + " -> " + printable(shown(one.b)),
          look.width, "    ");
    }
  }
  if (!untold.empty()) {
    std::vector<std::string> names;
    for (size_t i = 0; i < untold.size() && i < 12; ++i) names.push_back(printable(untold[i]));
    out += "\n" + text::paragraph("Told by one side only, so not compared: " + join(names, ", ") +
                                      (untold.size() > 12
                                           ? " and " + std::to_string(untold.size() - 12) + " more"
                                           : ""),
                                  look.width);
  }
  return out;
}

std::string diff_json(const Snapshot& a, const Snapshot& b, const std::vector<Difference>& found,
                      const std::vector<std::string>& untold) {
  Json list = Json::array(), names = Json::array();
  for (const Difference& one : found)
    list.push_back({{"name", printable(one.name)},
                    {"a", one.a.empty() ? Json() : Json(printable(one.a))},
                    {"b", one.b.empty() ? Json() : Json(printable(one.b))},
                    {"changes", one.changes},
                    {"effect", effect(one)},
                    {"why", printable(one.why)}});
  for (const std::string& key : untold) names.push_back(printable(key));
  Json out = {{"schema", "tracefire.doctor.diff/1"},
              {"same", found.empty()},
              {"summary", summary(found)},
              {"a", side(a)},
              {"b", side(b)},
              {"differences", list},
              {"not_compared", names}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string diff_refusal(const std::string& message) {
  Json out = {{"schema", "tracefire.doctor.diff/1"},
              {"same", Json()},
              {"summary", printable(text::redacted(message))},
              {"a", Json()},
              {"b", Json()},
              {"differences", Json::array()},
              {"not_compared", Json::array()}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

void read_faults(std::vector<std::string> kinds, Snapshot* out) {
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  if (kinds.size() > 32) kinds.resize(32);
  out->values["faults"] = kinds.empty() ? "none" : join(kinds, ", ");
}

/// What is wrong with a document of one of our schemas, "" where it can be compared.
std::string schema_problem(const Document& document) {
  const std::string& schema = document.schema;
  const bool known = schema == "tracefire.doctor/1" || schema == "tracefire.manifest/1";
  if (schema == "tracefire.doctor/1" && document.verdict == "unknown")
    return "is a report without a result";
  if (known && !document.problem.empty()) return "is a damaged " + schema + ": " + document.problem;
  if (schema == "tracefire.doctor/1") return "";
  if (schema.rfind("tracefire.", 0) != 0 || schema == "tracefire.manifest/1") return "";
  if (schema.rfind("tracefire.doctor/", 0) == 0 || schema.rfind("tracefire.manifest/", 0) == 0)
    return "is of the schema " + schema +
           ", which this program does not read; it reads tracefire.doctor/1 and "
           "tracefire.manifest/1";
  return "is of the schema " + schema + " and holds no manifest";
}

constexpr size_t kMostRead = 8 << 20;  // of a document; read_text() leaves out the middle of more

}  // namespace

std::string take_snapshot(const std::string& source, const Options& options, const Data& data,
                          Snapshot* out) {
  out->source = source;
  struct stat st {};
  if (source != "-" && ::stat(source.c_str(), &st) != 0)
    return source + " cannot be read: " + std::strerror(errno);
  if (source != "-" && S_ISDIR(st.st_mode)) {
    Root root(source);
    if (!root.ok()) return "The folder " + source + " cannot be opened";
    out->form = root.live() ? "machine" : "tree";
    Machine machine =
        read_machine(root, data, root.live() ? own_environment() : options.env, "", "The log");
    if (root.live()) add_live_facts(root, data, &machine);
    Question question{options.python, options.framework, options.framework_release};
    Report report = made_safe(
        make_report(root, data, make_survey(root, data, std::move(machine), question), question));
    read_inventory(report.inventory, out);
    out->values["verdict"] = report.verdict;
    std::vector<std::string> kinds;
    for (const Finding& finding : report.findings)
      if (finding.fault()) kinds.push_back(finding.kind);
    read_faults(std::move(kinds), out);
    return "";
  }
  std::string text, problem = read_text(source, &text);
  if (!problem.empty()) return source + " cannot be read: " + problem;
  std::optional<Document> document = parse_document(text);
  if (!document && text.size() >= kMostRead)
    return source + " is larger than 8 MiB, more than any report or manifest";
  if (!document) return source + " is neither a folder nor a JSON document";
  if (problem = schema_problem(*document); !problem.empty()) return source + " " + problem;
  if (document->schema.rfind("tracefire.doctor/", 0) == 0) {
    out->form = "report";
    read_inventory(document->inventory, out);
    out->values["verdict"] = document->verdict;
    read_faults(document->faults, out);
    return "";
  }
  out->form = "manifest";
  read_manifest(*document, data, out);
  if (out->values.empty()) return source + " holds nothing that can be compared";
  return "";
}

}  // namespace tracefire::doctor
