// SPDX-License-Identifier: Apache-2.0
//
// `doctor diff A B`: what differs between two machines, images, reports or manifests, and whether
// it can change results, speed or neither.
#pragma once

#include "tools/doctor/options.h"
#include "tools/doctor/snapshot.h"

namespace tracefire::doctor {

struct Difference {
  std::string name, a, b;            ///< "" where that side has none
  std::vector<std::string> changes;  ///< "results", "speed"
  std::string why;
  size_t rank = 0;
};

/// The most important first. What only one side can tell (a tree knows no seed, a manifest no
/// device nodes) is no difference and goes to `untold`.
std::vector<Difference> compare(const Snapshot& a, const Snapshot& b, const Data& data,
                                std::vector<std::string>* untold);
std::string diff_text(const Snapshot& a, const Snapshot& b, const std::vector<Difference>& found,
                      const std::vector<std::string>& untold, const text::Look& look = {});
std::string diff_json(const Snapshot& a, const Snapshot& b, const std::vector<Difference>& found,
                      const std::vector<std::string>& untold);

/// The answer with --json where nothing could be compared.
std::string diff_refusal(const std::string& message);

/// Reads what options.diff_a and diff_b name. Returns what is wrong, "" where nothing is.
std::string take_snapshot(const std::string& source, const Options& options, const Data& data,
                          Snapshot* snapshot);

}  // namespace tracefire::doctor
