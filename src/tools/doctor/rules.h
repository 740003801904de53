// SPDX-License-Identifier: Apache-2.0
//
// Rules are data (data/rules_*.json). Each says when it holds over facts, what is then the matter,
// what proves it and what to do.
//
//   kind        name of what is found; several rules may find one kind, told apart by "id"
//   scope       machine | environment | framework: which facts are looked at, and how often
//   order       place in the decision order; the first fault is the headline
//   severity    error | warning | info; the first two are faults
//   verdict     what a fault makes of the verdict
//   confidence  0 to 1
//   when        conditions that all hold; a list among them holds where one of its members does
//   any_gpu     also holds where there is no NVIDIA GPU
//   say, fix    texts with {fact}; or lists of [condition…, text], of which the first that holds
//   counts
//               (also for verdict and confidence)
//   evidence    facts whose sentences are shown, where they are known
//   drop_if     kinds of which this is a mere consequence; "*" is every fault that ends in an error
//               or on the CPU: so for what a log or a tool says and no file explains
//   info_if     kinds beside which this is only a note
//
// A condition is "fact" (known), "!fact", "fact=value", "fact!=value", "fact~part", "fact<version",
// "fact>=version", or "" (always).
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/data.h"
#include "tools/doctor/facts.h"

namespace tracefire::doctor {

struct Finding {
  std::string kind, severity;
  double confidence = 0;
  std::vector<std::string> evidence;  ///< first what is the matter, then what proves it
  std::string fix;
  // Not shown:
  std::string verdict;
  std::string environment, framework;  ///< "" for the machine
  int order = 0;
  std::vector<std::string> drop_if, info_if;
  std::string own_severity;  ///< before it was made a note because its environment does not count
  bool fault() const { return severity != "info"; }
  /// A fault of its environment, whether or not that one decides the verdict.
  bool own_fault() const { return fault() || (!own_severity.empty() && own_severity != "info"); }
};

bool holds(const std::string& condition, const Facts& facts);
/// Puts facts into "{name}"; unknown names become "".
std::string fill(const std::string& text, const Facts& facts);
/// What the rules of one scope find in these facts.
std::vector<Finding> apply_rules(const Data& data, const std::string& scope, const Facts& facts,
                                 const std::string& environment, const std::string& framework);
/// Takes out consequences and sorts by decision order.
std::vector<Finding> settle(std::vector<Finding> findings);

}  // namespace tracefire::doctor
