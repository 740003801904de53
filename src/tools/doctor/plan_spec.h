// SPDX-License-Identifier: Apache-2.0
//
// What `doctor plan --framework` is asked: a name with conditions on its release, as pip and conda
// write them.
#pragma once

#include <string>
#include <string_view>

namespace tracefire::doctor {

struct PlanSpec {
  std::string conditions;  ///< as meets() takes them: ">=2.15,<2.18"; "" for any release
  std::string shown;       ///< for people: "2.21", ">=2.15,<2.18"; "" for any release
  std::string build;       ///< "cu118" of "2.6.0+cu118", "cuda13" of "jax[cuda13]"; "" for any
  bool exact = false;      ///< one release, or one minor with its patches
  std::string error;       ///< what is wrong with it, "" where nothing is
};

/// Takes "NAME", "NAME[EXTRA]", "NAME+BUILD" and NAME with conditions: "==2.21", "=2.21" (conda's),
/// "==2.*", "~=2.15.0", ">=2.15,<2.18", "==2.6.0+cu118". "==2.21" means 2.21 with any patch.
PlanSpec parse_plan_spec(std::string_view text);

}  // namespace tracefire::doctor
