// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/rules.h"

#include "tools/doctor/fix.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

const Json* member(const Json& rule, const char* key) {
  auto it = rule.find(key);
  return it == rule.end() ? nullptr : &*it;
}

bool all_hold(const Json* conditions, const Facts& facts) {
  if (conditions == nullptr || !conditions->is_array()) return false;
  for (const Json& condition : *conditions) {
    bool ok = false;
    if (condition.is_string()) ok = holds(condition.get<std::string>(), facts);
    if (condition.is_array())
      for (const Json& choice : condition)
        ok |= choice.is_string() && holds(choice.get<std::string>(), facts);
    if (!ok) return false;
  }
  return true;
}

/// A plain value, or the last member of the first row whose other members hold.
Json choose(const Json& rule, const char* key, const Facts& facts) {
  const Json* value = member(rule, key);
  if (value == nullptr) return Json();
  if (!value->is_array()) return *value;
  for (const Json& row : *value) {
    if (!row.is_array() || row.empty()) continue;
    bool ok = true;
    for (size_t i = 0; i + 1 < row.size(); ++i)
      ok &= row[i].is_string() && holds(row[i].get<std::string>(), facts);
    if (ok) return row.back();
  }
  return Json();
}

std::string text_choice(const Json& rule, const char* key, const Facts& facts) {
  Json value = choose(rule, key, facts);
  return value.is_string() ? fill(value.get<std::string>(), facts) : "";
}

bool has_one(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (contains(text, part)) return true;
  return false;
}

/// What data/fix_notes.json adds to a fix.
std::string note_on(const std::string& fix, const Data& data, const Facts& facts) {
  auto rows = data.fix_notes().find("rows");
  if (rows == data.fix_notes().end() || !rows->is_array()) return "";
  for (const Json& row : *rows)
    if (has_one(fix, texts_of(row, "contains")) && !has_one(fix, texts_of(row, "unless")) &&
        all_hold(member(row, "when"), facts))
      return fill_fix(text_of(row, "add"), facts);
  return "";
}

bool related(const Finding& cause, const Finding& effect) {
  return cause.environment.empty() || effect.environment.empty() ||
         cause.environment == effect.environment;
}

/// For what only a log or a tool says: any known fault that ends in an error explains it.
bool last_resort(const Finding& finding) {
  return std::find(finding.drop_if.begin(), finding.drop_if.end(), "*") != finding.drop_if.end();
}

/// Whether findings[i] is a consequence of another that stays.
bool dropped(const std::vector<Finding>& findings, size_t i, int depth) {
  if (depth > 8) return false;
  for (size_t k = 0; last_resort(findings[i]) && k < findings.size(); ++k) {
    const Finding& cause = findings[k];
    bool ends = cause.verdict == "gpu-broken" || cause.verdict == "cpu-only";
    bool before = !last_resort(cause) || cause.order < findings[i].order;
    if (k != i && cause.fault() && ends && before && related(cause, findings[i]) &&
        !dropped(findings, k, depth + 1))
      return true;
  }
  for (const std::string& kind : findings[i].drop_if)
    for (size_t k = 0; k < findings.size(); ++k)
      if (k != i && findings[k].kind == kind && findings[k].fault() &&
          !(last_resort(findings[k]) && !last_resort(findings[i])) &&
          related(findings[k], findings[i]) && !dropped(findings, k, depth + 1))
        return true;
  return false;
}

}  // namespace

bool holds(const std::string& condition, const Facts& facts) {
  if (condition.empty()) return true;
  if (condition[0] == '!') return !holds(condition.substr(1), facts);
  size_t at = condition.find_first_of("=!<>~");
  if (at == condition.npos) return facts.has(condition);
  const std::string& value = facts.get(condition.substr(0, at));
  size_t width = at + 1 < condition.size() && condition[at + 1] == '=' ? 2 : 1;
  std::string op = condition.substr(at, width), wanted = fill(condition.substr(at + width), facts);
  if (op == "=") return value == wanted;
  if (op == "!=") return value != wanted;
  if (op == "~") return contains(value, wanted);
  if (value.empty()) return false;
  int order = compare_versions(value, wanted);
  return op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
}

std::string fill(const std::string& text, const Facts& facts) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    size_t open = text.find('{', at), close = open == text.npos ? text.npos : text.find('}', open);
    if (close == text.npos) break;
    out.append(text, at, open - at);
    out += facts.get(text.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return out.append(text, at);
}

std::vector<Finding> apply_rules(const Data& data, const std::string& scope, const Facts& facts,
                                 const std::string& environment, const std::string& framework) {
  std::vector<Finding> out;
  for (const Json& rule : data.rules()) {
    if (!rule.is_object() || text_of(rule, "scope") != scope) continue;
    const Json* any_gpu = member(rule, "any_gpu");
    bool everywhere = any_gpu != nullptr && any_gpu->is_boolean() && any_gpu->get<bool>();
    if (!everywhere && facts.get("gpu") == "absent") continue;
    if (!all_hold(member(rule, "when"), facts)) continue;
    Finding finding;
    finding.kind = text_of(rule, "kind");
    finding.severity = text_of(rule, "severity");
    if (finding.severity != "error" && finding.severity != "warning") finding.severity = "info";
    Json confidence = choose(rule, "confidence", facts);
    finding.confidence =
        confidence.is_number() ? std::clamp(confidence.get<double>(), 0.0, 1.0) : 0.5;
    finding.verdict = text_choice(rule, "verdict", facts);
    if (Json fix = choose(rule, "fix", facts); fix.is_string())
      finding.fix = fill_fix(fix.get<std::string>(), facts);
    finding.fix += note_on(finding.fix, data, facts);
    finding.environment = environment;
    finding.framework = framework;
    const Json* order = member(rule, "order");
    finding.order = order != nullptr && order->is_number() ? order->get<int>() : 1000;
    finding.drop_if = texts_of(rule, "drop_if");
    finding.info_if = texts_of(rule, "info_if");
    finding.evidence.push_back(text_choice(rule, "say", facts));
    for (const std::string& key : texts_of(rule, "evidence"))
      if (std::string sentence = facts.evidence(key);
          facts.has(key) && !sentence.empty() &&
          std::find(finding.evidence.begin(), finding.evidence.end(), sentence) ==
              finding.evidence.end())
        finding.evidence.push_back(sentence);
    out.push_back(std::move(finding));
  }
  return out;
}

std::vector<Finding> settle(std::vector<Finding> findings) {
  std::vector<Finding> kept;
  for (size_t i = 0; i < findings.size(); ++i)
    if (!dropped(findings, i, 0)) kept.push_back(findings[i]);
  std::vector<Finding> all = kept;
  for (Finding& finding : kept)
    for (const Finding& other : all)
      if (other.fault() && related(other, finding) &&
          std::find(finding.info_if.begin(), finding.info_if.end(), other.kind) !=
              finding.info_if.end())
        finding.severity = finding.own_severity = "info";
  std::stable_sort(kept.begin(), kept.end(), [](const Finding& a, const Finding& b) {
    if (a.fault() != b.fault()) return a.fault();
    return a.order < b.order;
  });
  return kept;
}

}  // namespace tracefire::doctor
