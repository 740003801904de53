// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/read/document.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tracefire::doctor {

namespace {

using Json = nlohmann::json;  // finds keys in short time, however many a hostile text has

constexpr size_t kMaxValues = 20000;
constexpr int kMaxDepth = 32;

std::string text_of(const Json& object, const char* key) {
  auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

void flatten(const Json& value, const std::string& path, int depth, Document* out) {
  if (depth > kMaxDepth || out->values.size() >= kMaxValues || value.is_null()) return;
  if (value.is_object()) {
    // {"name": "seed_mode", "value": "x", …} is a pair of its own.
    for (const auto& [key, member] : value.items()) {
      if (key == "name" && !path.empty() && value.size() > 1 && path.back() != '.' &&
          path.find_last_of("0123456789") != path.size() - 1)
        continue;
      flatten(member, path.empty() ? key : path + "." + key, depth + 1, out);
    }
    return;
  }
  if (value.is_array() && value.empty()) out->values.emplace_back(path, "[]");
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      std::string name = text_of(value[i], "name");
      bool by_name = !name.empty() && path.find("gpu") == path.npos;
      flatten(value[i], path + "." + (by_name ? name : std::to_string(i)), depth + 1, out);
    }
    return;
  }
  std::string text = value.is_string() ? value.get<std::string>()
                                       : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 1000) text.resize(1000);
  out->values.emplace_back(path, text);
}

enum Kind : unsigned {
  kText = 1,
  kNull = 2,
  kNumber = 4,
  kWhole = 8,
  kFlag = 16,
  kList = 32,
  kObject = 64
};

/// A field of a schema: its path with "*" for each member of a list, what it may be, and the words
/// that are allowed where it is one of few.
struct Field {
  const char* path;
  unsigned kinds;
  std::vector<std::string_view> words;
  bool needed = false;
};

bool is_of(const Json& value, unsigned kinds) {
  return ((kinds & kText) != 0 && value.is_string()) || ((kinds & kNull) != 0 && value.is_null()) ||
         ((kinds & kNumber) != 0 && value.is_number()) ||
         ((kinds & kWhole) != 0 && value.is_number_unsigned()) ||
         ((kinds & kFlag) != 0 && value.is_boolean()) ||
         ((kinds & kList) != 0 && value.is_array()) ||
         ((kinds & kObject) != 0 && value.is_object());
}

std::string expected(const Field& field) {
  std::string out;
  for (std::string_view word : field.words) out += (out.empty() ? "" : ", ") + std::string(word);
  if (!out.empty()) return "one of " + out;
  for (const auto& [kind, name] : {std::pair<unsigned, const char*>{kText, "text"},
                                   {kNumber, "a number"},
                                   {kWhole, "a whole number, 0 or more"},
                                   {kFlag, "true or false"},
                                   {kList, "a list"},
                                   {kObject, "an object"},
                                   {kNull, "null"}})
    if ((field.kinds & kind) != 0) out += (out.empty() ? "" : " or ") + std::string(name);
  return out;
}

/// The first trouble with a field, "" where there is none. `rest` is what of its path is left.
std::string trouble(const Json& value, const Field& field, std::string_view rest,
                    const std::string& name) {
  if (rest.empty()) {
    bool right = is_of(value, field.kinds);
    if (right && value.is_string() && !field.words.empty())
      right = std::find(field.words.begin(), field.words.end(), value.get<std::string>()) !=
              field.words.end();
    if (right) return "";
    std::string shown = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > 60) shown = shown.substr(0, 60) + " …";
    return name + " is " + shown + "; expected " + expected(field);
  }
  const size_t dot = rest.find('.');
  const std::string_view step = rest.substr(0, dot);
  const std::string_view after = dot == rest.npos ? "" : rest.substr(dot + 1);
  if (step == "*") {  // its being a list is another field's matter
    for (size_t i = 0; value.is_array() && i < std::min(value.size(), kMaxValues); ++i)
      if (std::string found = trouble(value[i], field, after, name + "[" + std::to_string(i) + "]");
          !found.empty())
        return found;
    return "";
  }
  if (!value.is_object()) return "";
  const std::string inner = (name.empty() ? "" : name + ".") + std::string(step);
  auto member = value.find(std::string(step));
  if (member == value.end())
    return field.needed ? inner + " is missing; expected " + expected(field) : "";
  return trouble(*member, field, after, inner);
}

const std::vector<Field>& report_fields() {
  static const std::vector<Field> kFields = {
      {"verdict", kText, {"gpu-ok", "gpu-broken", "gpu-degraded", "cpu-only", "unknown"}, true},
      {"summary", kText, {}, true},
      {"inventory", kList, {}, true},
      {"inventory.*", kText, {}},
      {"findings", kList, {}, true},
      {"findings.*", kObject, {}},
      {"findings.*.kind", kText, {}, true},
      {"findings.*.severity", kText, {"error", "warning", "info"}, true},
      {"findings.*.confidence", kNumber, {}, true},
      {"findings.*.evidence", kList, {}, true},
      {"findings.*.evidence.*", kText, {}},
      {"findings.*.fix", kText, {}, true}};
  return kFields;
}

/// A manifest of an earlier release may lack some.
const std::vector<Field>& manifest_fields() {
  static const std::vector<Field> kFields = {
      {"time", kText, {}},
      {"tracefire", kObject, {}},
      {"tracefire.version", kText, {}},
      {"tracefire.commit", kText | kNull, {}},
      {"platform", kObject, {}},
      {"platform.system", kText | kNull, {}},
      {"platform.kernel", kText, {}},
      {"platform.machine", kText, {}},
      {"platform.processor", kText | kNull, {}},
      {"platform.instructions", kText | kNull, {}},
      {"platform.memory_bytes", kWhole, {}},
      {"python", kObject | kNull, {}},
      {"python.version", kText, {}},
      {"python.keras", kText | kNull, {}},
      {"python.numpy", kText | kNull, {}},
      {"driver", kText | kNull, {}},
      {"driver_cuda", kText | kNull, {}},
      {"gpus", kList, {}},
      {"gpus.*", kObject, {}},
      {"gpus.*.device", kText | kNull, {}},
      {"gpus.*.name", kText, {}},
      {"gpus.*.capability", kText | kNull, {}},
      {"gpus.*.memory_bytes", kWhole, {}},
      {"gpus.*.uuid", kText | kNull, {}},
      {"why_no_gpu", kText | kNull, {}},
      {"libraries", kList, {}},
      {"libraries.*", kObject, {}},
      {"libraries.*.name", kText, {}},
      {"libraries.*.version", kText | kNull, {}},
      {"libraries.*.path", kText, {}},
      {"libraries.*.origin", kText, {}},
      {"libraries.*.in_use", kFlag, {}},
      {"seed", kWhole | kNull, {}},
      {"precision", kText, {"tf32", "highest", "highest, tf32"}},
      {"settings", kList, {}},
      {"settings.*", kObject, {}},
      {"settings.*.name", kText, {}},
      {"settings.*.value", kText, {}},
      {"settings.*.source", kText, {"system file", "user file", "environment", "flag", "call"}}};
  return kFields;
}

std::string first_trouble(const Json& document, const std::vector<Field>& fields) {
  for (const Field& field : fields)
    if (std::string found = trouble(document, field, field.path, ""); !found.empty()) return found;
  return "";
}

}  // namespace

bool too_deep(std::string_view text) {
  int depth = 0;
  bool inside = false;  // a string, whose brackets do not count
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '\\') ++i;
    if (c == '"') inside = !inside;
    if (inside) continue;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > 200) return true;
  }
  return false;
}

std::optional<Document> parse_document(std::string_view text) {
  if (too_deep(text)) return std::nullopt;
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object()) return std::nullopt;
  if (auto it = parsed.find("manifest"); it != parsed.end() && it->is_object()) {
    Json inner = *it;
    parsed = std::move(inner);
  }
  Document out;
  out.schema = text_of(parsed, "schema");
  if (out.schema.rfind("tracefire.doctor/", 0) == 0) {
    out.problem = first_trouble(parsed, report_fields());
    out.verdict = text_of(parsed, "verdict");
    if (parsed.contains("inventory") && parsed["inventory"].is_array())
      for (const Json& line : parsed["inventory"])
        if (line.is_string() && out.inventory.size() < kMaxValues)
          out.inventory.push_back(line.get<std::string>());
    if (parsed.contains("findings") && parsed["findings"].is_array())
      for (const Json& finding : parsed["findings"])
        if (std::string severity = text_of(finding, "severity");
            (severity == "error" || severity == "warning") && out.faults.size() < 1000)
          out.faults.push_back(text_of(finding, "kind"));
    return out;
  }
  if (out.schema == "tracefire.manifest/1") out.problem = first_trouble(parsed, manifest_fields());
  flatten(parsed, "", 0, &out);
  return out;
}

}  // namespace tracefire::doctor
