// SPDX-License-Identifier: Apache-2.0
//
// Commands that run where they are given: rules write `{pip} install …` and the environment says by
// what that is done (pip, uv, conda, poetry, pdm, pipx); a Python that is not there is installed
// first; root in a container has no sudo.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/environments.h"
#include "tools/doctor/facts.h"

namespace tracefire::doctor {

/// "pip", "pip.by" and the rest that fill_fix() asks for, each behind `prefix` ("" or "main.").
/// `env` is null where there is no environment at all.
void installer_facts(const std::string& prefix, const Environment* env, Facts* facts);

/// Pythons of the system and of its environments; whether the system's own takes no packages.
void python_places(const Root& root, const Machine& machine,
                   const std::vector<Environment>& environments, Facts* facts);

/// Puts facts and commands into the text of a fix.
std::string fill_fix(const std::string& text, const Facts& facts);

}  // namespace tracefire::doctor
