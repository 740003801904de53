// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/version.h"

#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

struct Parsed {
  std::vector<long> numbers;
  int stage = 0;  ///< -1 for a pre-release
};

Parsed parse(std::string_view text) {
  Parsed out;
  text = text.substr(0, text.find('+'));
  size_t i = 0;
  if (i < text.size() && (text[i] == 'v' || text[i] == 'V')) ++i;
  while (i < text.size() && out.numbers.size() < 8) {
    if (text[i] >= '0' && text[i] <= '9') {
      long value = 0;
      for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
        if (value < 100000000) value = value * 10 + (text[i] - '0');
      out.numbers.push_back(value);
    } else if (text[i] == '.' && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9') {
      ++i;
    } else {
      break;
    }
  }
  std::string rest = lower(text.substr(i));
  for (std::string_view mark : {"rc", "dev", "a", "b", "alpha", "beta"})
    if (trim(rest).find(mark) == 0 || rest.find("." + std::string(mark)) == 0) out.stage = -1;
  return out;
}

bool one_condition(std::string_view version, std::string_view condition) {
  condition = trim(condition);
  size_t at = condition.find_first_not_of("<>=!~");
  if (condition.empty() || at == condition.npos || at == 0) return true;
  std::string_view op = condition.substr(0, at), wanted = trim(condition.substr(at));
  bool star = wanted.size() > 2 && wanted.substr(wanted.size() - 2) == ".*";
  if (star) wanted.remove_suffix(2);
  if (star || op == "~=") {
    int parts = static_cast<int>(split(wanted, '.').size()) - (star ? 0 : 1);
    bool same = leading(version, parts) == leading(wanted, parts);
    if (op == "!=") return !same;
    return same && (star || compare_versions(version, wanted) >= 0);
  }
  int order = compare_versions(version, wanted);
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  if (op == ">=") return order >= 0;
  if (op == "!=") return order != 0;
  return order == 0;
}

}  // namespace

int compare_versions(std::string_view a, std::string_view b) {
  Parsed x = parse(a), y = parse(b);
  size_t count = std::max(x.numbers.size(), y.numbers.size());
  x.numbers.resize(count);
  y.numbers.resize(count);
  for (size_t i = 0; i < count; ++i)
    if (x.numbers[i] != y.numbers[i]) return x.numbers[i] < y.numbers[i] ? -1 : 1;
  return x.stage == y.stage ? 0 : x.stage < y.stage ? -1 : 1;
}

std::string leading(std::string_view version, int parts) {
  std::string out;
  for (long number : parse(version).numbers) {
    if (parts-- <= 0) break;
    if (!out.empty()) out += '.';
    out += std::to_string(number);
  }
  return out;
}

int major_of(std::string_view version) {
  Parsed parsed = parse(version);
  return parsed.numbers.empty() ? -1 : static_cast<int>(parsed.numbers[0]);
}

std::string local_part(std::string_view version) {
  size_t at = version.find('+');
  return at == version.npos ? "" : std::string(version.substr(at + 1));
}

std::string public_part(std::string_view version) {
  return std::string(version.substr(0, version.find('+')));
}

bool meets(std::string_view version, std::string_view conditions) {
  for (std::string_view condition : split(conditions, ','))
    if (!one_condition(version, condition)) return false;
  return true;
}

bool is_pep440(std::string_view text) {
  const std::string whole = lower(text);
  if (whole.empty() || whole.size() > 64) return false;
  std::string_view left = whole;
  auto skip = [&](std::string_view word) {
    if (left.rfind(word, 0) != 0) return false;
    left.remove_prefix(word.size());
    return true;
  };
  auto number = [&] {
    const size_t digits = std::min(left.size(), left.find_first_not_of("0123456789"));
    left.remove_prefix(digits);
    return digits > 0;
  };
  auto separator = [&] {
    if (!left.empty() && (left[0] == '.' || left[0] == '-' || left[0] == '_'))
      left.remove_prefix(1);
  };
  skip("v");
  if (!number()) return false;
  if (skip("!") && !number()) return false;  // an epoch
  while (left.size() > 1 && left[0] == '.' && left[1] >= '0' && left[1] <= '9') {
    left.remove_prefix(1);
    number();
  }
  // Pre-release, post-release, development release, in this order, each with or without a number.
  for (std::initializer_list<std::string_view> stage :
       {std::initializer_list<std::string_view>{"alpha", "beta", "preview", "pre", "rc", "a", "b",
                                                "c"},
        {"post", "rev", "r"},
        {"dev"}}) {
    const std::string_view before = left;
    separator();
    bool found = false;
    for (std::string_view word : stage) found = found || skip(word);
    if (!found) {
      left = before;
      continue;
    }
    const std::string_view behind = left;
    separator();
    if (!number()) left = behind;
  }
  if (left.empty()) return true;
  if (left[0] != '+' || left.size() < 2) return false;
  char previous = '.';
  for (char c : left.substr(1)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!letter && ((c != '.' && c != '-' && c != '_') || previous == '.')) return false;
    previous = letter ? c : '.';
  }
  return previous != '.';
}

}  // namespace tracefire::doctor
