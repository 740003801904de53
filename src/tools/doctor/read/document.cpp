// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/read/document.h"

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
  flatten(parsed, "", 0, &out);
  return out;
}

}  // namespace tracefire::doctor
