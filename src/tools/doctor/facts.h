// SPDX-License-Identifier: Apache-2.0
//
// What was found out, as names with values and the sentences that prove them. Rules ask for nothing
// else.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire::doctor {

struct Fact {
  std::string value;
  std::string evidence;  ///< a sentence, "" where the value says it all
};

class Facts {
 public:
  void set(const std::string& key, std::string value, std::string evidence = "") {
    facts_[key] = {std::move(value), std::move(evidence)};
  }
  /// Sets "yes" where `holds`.
  void flag(const std::string& key, bool holds, std::string evidence = "") {
    if (holds) set(key, "yes", std::move(evidence));
  }
  const std::string& get(const std::string& key) const {
    static const std::string kNone;
    auto it = facts_.find(key);
    return it == facts_.end() ? kNone : it->second.value;
  }
  bool has(const std::string& key) const { return !get(key).empty(); }
  std::string evidence(const std::string& key) const {
    auto it = facts_.find(key);
    return it == facts_.end() ? "" : it->second.evidence;
  }
  const std::map<std::string, Fact>& all() const { return facts_; }

 private:
  std::map<std::string, Fact> facts_;
};

}  // namespace tracefire::doctor
