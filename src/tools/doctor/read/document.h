// SPDX-License-Identifier: Apache-2.0
//
// Documents that say what a machine or a run was made of: the doctor's own report, and manifests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tracefire::doctor {

struct Document {
  /// What of a document of ours is not as its schema says, with the field's name: "verdict is
  /// \"fine\"; expected …"; "" where nothing is.
  std::string problem;
  std::string schema;   ///< "tracefire.doctor/1", "tracefire.manifest/1", "" where it names none
  std::string verdict;  ///< a report's
  std::vector<std::string> inventory;  ///< a report's sentences
  std::vector<std::string> faults;     ///< kinds of a report's errors and warnings
  /// Every other member as "a.b" -> text; a member of a list goes by its "name", else by its
  /// number. At most 20000.
  std::vector<std::pair<std::string, std::string>> values;
};

/// True where JSON nests deeper than any document of ours: a parser would run out of stack.
bool too_deep(std::string_view text);

/// Nothing where the text is no JSON object. A manifest inside another document ("manifest") is
/// taken out of it. Depth is bounded.
std::optional<Document> parse_document(std::string_view text);

}  // namespace tracefire::doctor
