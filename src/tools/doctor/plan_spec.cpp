// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/plan_spec.h"

#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

constexpr const char* kExamples = "; write ==2.21, >=2.15,<2.18, ~=2.15.0 or ==2.*";

/// One condition in the form of meets(), "" with spec->error where it is none.
std::string condition(std::string_view text, PlanSpec* spec) {
  const std::string word(trim(text));
  const size_t at = word.find_first_not_of("<>=!~");
  std::string op = word.substr(0, at);
  std::string version(at == word.npos ? "" : trim(std::string_view(word).substr(at)));
  bool known = false;
  for (std::string_view one : {"==", "===", "=", "~=", "!=", "<=", ">=", "<", ">"})
    known |= op == one;
  if (!known || version.empty()) {
    spec->error = "\"" + word + "\" is no condition on a version" + kExamples;
    return "";
  }
  const bool equal = op == "=" || op == "==" || op == "===";
  bool star = version.size() > 2 && version.substr(version.size() - 2) == ".*";
  if (star) version.resize(version.size() - 2);
  if (!is_pep440(version)) {
    spec->error = "\"" + version + "\" is no version" + kExamples;
    return "";
  }
  if (star && !equal && op != "!=") {
    spec->error = "\"" + word + "\": .* goes with == and != only" + kExamples;
    return "";
  }
  if (std::string local = local_part(version); !local.empty()) {
    if (!equal) {
      spec->error = "\"" + word + "\": a build (+" + local + ") goes with == only" + kExamples;
      return "";
    }
    spec->build = lower(local);
    version = public_part(version);
  }
  const size_t parts = is_version(version) ? split(version, '.').size() : 9;
  if (op == "~=" && parts < 2) {
    spec->error = "\"" + word + "\": ~= needs a version with a dot" + kExamples;
    return "";
  }
  if (equal) op = "==";
  if (equal) spec->exact = !star || parts >= 2;
  if (equal && (star || parts < 3)) version += ".*";
  if (op == "!=" && star) version += ".*";
  return op + version;
}

}  // namespace

PlanSpec parse_plan_spec(std::string_view text) {
  PlanSpec out;
  text = trim(text);
  std::string_view rest = text.substr(std::min(text.size(), text.find_first_of("[+=<>!~ \t")));
  rest = trim(rest);
  if (!rest.empty() && rest[0] == '[') {
    const size_t end = rest.find(']');
    if (end == rest.npos) {
      out.error = "\"" + std::string(text) + "\" has [ without ]";
      return out;
    }
    for (std::string_view extra : split(rest.substr(1, end - 1), ','))
      if (const std::string name = lower(trim(extra));
          name.rfind("cuda1", 0) == 0 && name.size() >= 6)
        out.build = name.substr(0, 6);
    rest = trim(rest.substr(end + 1));
  }
  if (!rest.empty() && rest[0] == '+') {
    out.build = lower(trim(rest.substr(1)));
    if (out.build.empty()) out.error = "\"" + std::string(text) + "\" names no build behind +";
    return out;
  }
  if (rest.empty()) return out;
  size_t count = 0;
  for (std::string_view one : split(rest, ',')) {
    if (trim(one).empty()) continue;
    const std::string made = condition(one, &out);
    if (!out.error.empty()) return out;
    out.conditions += (out.conditions.empty() ? "" : ",") + made;
    out.shown += (out.shown.empty() ? "" : ",") + std::string(trim(one));
    ++count;
  }
  out.exact = out.exact && count == 1;
  if (out.exact) out.shown = std::string(trim(out.shown.substr(out.shown.find_first_not_of('='))));
  return out;
}

}  // namespace tracefire::doctor
